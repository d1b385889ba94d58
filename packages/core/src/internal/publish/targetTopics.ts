/**
 * The topics that a binding publishes to by itself: its retry topics and its dead letter topic. Creates the one that is needed, and knows how many partitions
 * they have.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as SingleFlight from "../base/singleFlight.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import * as DerivedTopic from "./derivedTopic.ts"
import * as MessageLimits from "./messageLimits.ts"

export interface TargetTopics {
  /** Creates a topic that is missing; fails when that is not possible, or not wanted (`missingTopics`). */
  readonly create: (topic: string) => Effect.Effect<void, BrokerError>
  /** Fails with the first retry or dead letter topic that is not there (`missingTopics: "require"`). */
  readonly require: Effect.Effect<void, BrokerError>
  /** Undefined when the cluster does not say. Remembered for a minute. */
  readonly partitionsOf: (topic: string) => Effect.Effect<number | undefined>
  /** The topic's `max.message.bytes`; undefined when the cluster does not say within a second. */
  readonly maxMessageBytes: MessageLimits.MessageLimits
  /** A partition was refused: the topic may have been created anew with fewer. */
  readonly doubt: (topic: string) => Effect.Effect<void>
}

/** How long a topic's partition count holds, and how long it holds that there is none. */
const rememberMillis = 60_000
const retryMillis = 1_000

interface Count {
  readonly partitions: number | undefined
  readonly atMillis: number
}

/** Requests run in the scope. */
export const make = (
  definition: BindingDefinition<unknown>,
  broker: Broker["Service"],
  scope: Scope.Scope
): TargetTopics => {
  const counts = new Map<string, Count>()
  const creations = new Map<string, { readonly exit: Exit.Exit<void, BrokerError>; readonly atMillis: number }>()
  const withAdmin = <A, E>(use: (admin: Admin) => Effect.Effect<A, E>) =>
    Effect.scoped(Effect.flatMap(broker.admin, use))

  /** Answers how many partitions it got; undefined when it was there already. */
  const createWith = Effect.fnUntraced(function* (admin: Admin, topic: string) {
    const source = Sources.ofTopic(definition, topic)
    const made = DerivedTopic.like(yield* DerivedTopic.model(admin, source.topic), source, topic)
    return yield* Effect.as(admin.createTopics([made]), made.partitions).pipe(
      Effect.catchTag("TopicExists", () => Effect.succeed(undefined))
    )
  })

  const fresh = (topic: string, nowMillis: number): Count | undefined => {
    const known = counts.get(topic)
    if (known === undefined) return undefined
    const age = Math.abs(nowMillis - known.atMillis)
    return age < (known.partitions === undefined ? retryMillis : rememberMillis) ? known : undefined
  }

  const describe = Effect.fnUntraced(function* (topic: string) {
    const now = yield* Clock.currentTimeMillis
    const known = fresh(topic, now)
    if (known !== undefined) return known.partitions
    const described = yield* Effect.orElseSucceed(
      withAdmin((admin) => admin.describeTopic(topic)),
      () => undefined
    )
    // A topic that was created since the request began is known better.
    const made = described === undefined ? fresh(topic, now) : undefined
    if (made !== undefined) return made.partitions
    const partitions = described?.partitions
    counts.set(topic, { partitions, atMillis: now })
    return partitions
  })

  /** The last result holds for a second, because all records that wait for the topic ask at once. */
  const createRarely = Effect.fnUntraced(function* (topic: string) {
    const now = yield* Clock.currentTimeMillis
    const last = creations.get(topic)
    if (last !== undefined && Math.abs(now - last.atMillis) < retryMillis) return yield* last.exit
    const made = yield* Effect.exit(withAdmin((admin) => createWith(admin, topic)))
    const exit = Exit.asVoid(made)
    creations.set(topic, { exit, atMillis: now })
    counts.delete(topic)
    if (Exit.isSuccess(made) && made.value !== undefined) counts.set(topic, { partitions: made.value, atMillis: now })
    return yield* exit
  })

  // Ten thousand failing records ask the cluster once.
  const describeOnce = SingleFlight.perKey(describe, scope)

  return {
    maxMessageBytes: MessageLimits.make(broker, scope),
    doubt: (topic) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const known = counts.get(topic)
        if (known !== undefined && Math.abs(now - known.atMillis) >= retryMillis) counts.delete(topic)
      }),
    create: SingleFlight.perKey(createRarely, scope),
    require: withAdmin((admin) =>
      Effect.forEach(Sources.derivedOf(definition), admin.describeTopic, { discard: true })
    ),
    partitionsOf: (topic) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const known = fresh(topic, now)
        return known === undefined ? describeOnce(topic) : Effect.succeed(known.partitions)
      })
  }
}
