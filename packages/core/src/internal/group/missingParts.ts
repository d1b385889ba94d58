/**
 * Makes what the units of a consumer lack in the cluster: a retry topic that was deleted, and partitions of a retry topic whose source has grown. Elsewhere the first copy makes its
 * topic; here no copy is published before the unit runs.
 */
import * as Effect from "effect/Effect"
import type { Broker } from "../../Broker.ts"
import type { ConsumerContext } from "../delivery/consumerContext.ts"
import type { Partition } from "../partition/partition.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import { unavailable } from "./topicInspection.ts"

interface Options {
  readonly context: ConsumerContext<unknown>
  readonly broker: Broker["Service"]
  readonly partitions: () => ReadonlyArray<Partition>
}

/** Between two looks at the units. */
const lookMillis = 5_000

/** A rebalance moves the parts of a unit together within this time, and a unit begins. */
const patienceMillis = 3_000

/** Looks again and again. It does nothing where the binding makes no topics (`missingTopics`). */
export const run = (options: Options): Effect.Effect<void> => {
  const { context, partitions } = options
  if (context.definition.missingTopics !== "create") return Effect.void
  const look = Effect.suspend(() => {
    const nowMillis = context.clock.currentTimeMillisUnsafe()
    const waiting = partitions().filter(
      ({ awaitsUnit, tier }) => tier === undefined && awaitsUnit && nowMillis - awaitsUnit.sinceMillis >= patienceMillis
    )
    const topics = Array.from(new Set(waiting.map(({ topic }) => topic)))
    return topics.length === 0 ? Effect.void : repair(options, topics)
  })
  return Effect.forever(Effect.andThen(Effect.sleep(lookMillis), look))
}

const repair = ({ context, broker }: Options, sources: ReadonlyArray<string>): Effect.Effect<void> => {
  const { definition, copyPublisher } = context
  return Effect.andThen(
    // A retry topic that is missing.
    Effect.ignore(copyPublisher.prepare),
    Effect.forEach(sources, (topic) => raise(context, broker, Sources.ofTopic(definition, topic)), { discard: true })
  )
}

/** Each retry topic gets as many partitions as its source has. */
const raise = (
  context: ConsumerContext<unknown>,
  broker: Broker["Service"],
  { topic: source, tiers }: BindingDefinition<unknown>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const admin = yield* broker.admin
    const { partitions } = yield* admin.describeTopic(source)
    for (const { topic } of tiers.topics) {
      const raised = Effect.flatMap(admin.describeTopic(topic), (found) =>
        found.partitions < partitions ? admin.createPartitions(topic, partitions) : Effect.void
      )
      yield* Effect.match(raised, {
        onFailure: (error) => unavailable(context, topic, error),
        onSuccess: () => context.failures.topics.worked(topic)
      })
    }
  }).pipe(
    Effect.scoped,
    Effect.catch((error) => Effect.sync(() => unavailable(context, source, error)))
  )
