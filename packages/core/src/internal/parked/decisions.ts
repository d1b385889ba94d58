/**
 * Decides about a held key: at once where this process owns its partition, else by a record in the first retry topic, which the owner reads.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { Header, RecordPosition } from "../../ConsumerRecord.ts"
import {
  type Decide,
  type Decided,
  type GivenDecision,
  type HeldKey,
  type KeyDecision,
  KeyNotHeld
} from "../../ParkedKeys.ts"
import type { InvalidArgument } from "../../Replay.ts"
import { isBytes } from "../base/bytes.ts"
import { isObject, read } from "../base/properties.ts"
import { textOf } from "../order/entry.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import { number } from "../record/deadLetterHeaders.ts"
import * as Names from "../record/headerNames.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import * as Arguments from "../replay/arguments.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as ParkedList from "./parkedList.ts"

export interface DecisionOptions extends ParkedList.ListOptions {
  /** A decision was given. */
  readonly onDecided: (given: GivenDecision) => Effect.Effect<void>
}

type Verb = Exclude<KeyDecision["kind"], "accept-loss">

const verbs = { retry: "retry-held", skip: "skip-held" } as const

export const decide =
  (options: DecisionOptions, kind: Verb): Decide =>
  (given, reason) =>
    Effect.gen(function* () {
      yield* Arguments.reason(kind, reason)
      const search = yield* searchOf(options, kind, given)
      const matching = (yield* ParkedList.list(options)).filter(search.matches)
      const held = matching.filter(({ key }) => key.state === "held")
      const [only] = held
      if (only === undefined) return yield* notHeld(options, search, matching)
      if (held.length > 1) {
        const where = held.map(({ key }) => placeOf(key)).join(", ")
        return yield* Arguments.refuse(kind, "key", search.name, `the place of one of its records: ${where}`)
      }
      const by = yield* give(options, only, kind)
      if (by === undefined) return yield* notHeld(options, search, matching)
      const { topic, partition, offset } = only.key
      yield* options.onDecided({ at: { topic, partition, offset }, decision: { kind, reason } })
      return { key: only.key, by } satisfies Decided
    })

interface Search {
  /** For messages. A key that was given as bytes is not quoted. */
  readonly name: string
  readonly matches: (listed: ParkedList.KeyInGroup) => boolean
}

const encoder = new TextEncoder()

const searchOf = (
  { definition }: DecisionOptions,
  command: string,
  given: HeldKey
): Effect.Effect<Search, InvalidArgument> => {
  if (typeof given === "string" || isBytes(given)) {
    const key = textOf(typeof given === "string" ? encoder.encode(given) : given)
    const name = typeof given === "string" ? `'${given}'` : "(bytes)"
    return Effect.succeed({ name, matches: (listed) => textOf(listed.key.key) === key })
  }
  if (!isObject(given)) return Arguments.refuse(command, "key", given, "a key as bytes or text, or a place")
  const topic = read(given, "topic") ?? definition.topic
  return Effect.map(Arguments.position(command, "key", given), (position) => ({
    name: placeOf({ ...position, topic: String(topic) }),
    matches: ({ key }) => key.topic === topic && key.partition === position.partition && key.offset === position.offset
  }))
}

const placeOf = ({ topic, partition, offset }: RecordPosition): string => `${topic}-${partition}@${offset}`

const notHeld = ({ definition }: DecisionOptions, { name }: Search, matching: ReadonlyArray<ParkedList.KeyInGroup>) =>
  Effect.fail(
    new KeyNotHeld({
      ...{ binding: BindingKey.label(definition), wanted: name },
      found: matching.map(({ key }) => `${placeOf(key)}: ${key.state}`)
    })
  )

/** Undefined when the key is not held any more. */
const give = (
  { broker }: DecisionOptions,
  listed: ParkedList.KeyInGroup,
  kind: Verb
): Effect.Effect<Decided["by"] | undefined, BrokerError> => {
  const { owned, key } = listed
  const command = { kind: verbs[kind], offset: key.offset }
  if (owned === undefined) return Effect.as(write(broker, listed, command), "owner")
  return Effect.sync(() => (owned.unit.heldKeys.command(owned.entry, command) ? "here" : undefined))
}

/** An operator waits for it. */
const producerTimeouts = { deliveryTimeout: 5_000, closeTimeout: 2_000 } as const

/** Into the topic whose records wait least: the owner reads it in order. */
const write = (broker: Broker["Service"], listed: ParkedList.KeyInGroup, command: OrderHeaders.Command) =>
  send(broker, listed, 1, listed.key.key, OrderHeaders.ofCommand(listed.bond, command))

/** Writes into a retry topic, beside the locks of the listed key's partition. */
export const send = Effect.fnUntraced(
  function* (
    broker: Broker["Service"],
    { definition, key: { partition } }: ParkedList.KeyInGroup,
    part: number,
    key: Uint8Array | null,
    order: ReadonlyArray<Header>
  ) {
    const { topic, first } = definition.tiers.topics[part - 1]!
    const headers = [
      number(Names.retryTier, first),
      number(Names.retryAttempt, 1),
      number(Names.retryTimestamp, yield* Clock.currentTimeMillis),
      ...order
    ]
    const producer = yield* broker.producer(producerTimeouts)
    yield* producer.send({
      ...{ topic, partition, key, value: null },
      headers: CopyOwner.marked(headers, topic, definition.groupId)
    })
  },
  (effect) => Effect.scoped(effect)
)
