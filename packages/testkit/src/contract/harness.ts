/**
 * Helpers of the outcomes: unique names, topics, records, and waits that work on virtual and on real clocks.
 *
 * Nothing here depends on the clock: virtual time jumps while a test waits, a real cluster needs real time. A wait ends as soon as its condition is
 * true.
 */
import { Broker, type BrokerError, type ConsumerRecord } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { assert } from "vitest"

/** The differences between adapters that the contract allows. */
export interface Capabilities {
  /** `all`: headers keep their order. `same-name`: only the values of one name keep it (kafkajs keeps headers in an object). */
  readonly headerOrder: "all" | "same-name"
  /** A partition that stays with its member in a rebalance is `untouched`, or `revoked` and assigned again (eager). */
  readonly staying: "untouched" | "revoked"
  /** A revoked partition moves once it is `released`, or `at-once` when the client cannot delay its rejoin. */
  readonly handover: "released" | "at-once"
  /** Whether the client supports `group.instance.id` (KIP-345). */
  readonly staticMembership: "supported" | "none"
  /** The side that assigns partitions: the `members` (classic protocol), or the `broker` (KIP-848). It decides which of two static members with one name goes on. */
  readonly assignment: "members" | "broker"
}

/** One outcome of the contract: a title, and a program that dies when the outcome does not hold. */
export interface Outcome {
  /** The claim, as the title of its test. */
  readonly title: string
  /** Whether a client with these capabilities must show the outcome. Default: every client. */
  readonly needs?: (capabilities: Capabilities) => boolean
  /** The program: it dies with an assertion error when the outcome does not hold. */
  readonly run: Effect.Effect<void, BrokerError.BrokerError, Broker.Broker | Scope.Scope>
}

/** Text as UTF-8. */
export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** UTF-8 as text; null stays null. */
export const text = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : new TextDecoder().decode(bytes)

/** A name that is unique, also on a shared cluster. */
export const unique = (what: string): string => `contract-${what}-${crypto.randomUUID()}`

/** Longest wait for anything before the outcome counts as failed. */
export const longestWait: Duration.Input = "25 seconds"

/** Repeats the check until it neither fails nor dies. When it never passes, its last result is reported. */
export const eventually = <A, E, R>(
  check: Effect.Effect<A, E, R>,
  within: Duration.Input = longestWait
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const deadlineMillis = (yield* Clock.currentTimeMillis) + Duration.toMillis(within)
    while (true) {
      const exit = yield* Effect.exit(check)
      if (Exit.isSuccess(exit) || Cause.hasInterrupts(exit.cause)) return yield* exit
      if ((yield* Clock.currentTimeMillis) >= deadlineMillis) return yield* exit
      yield* Effect.sleep("25 millis")
    }
  })

/** Waits until an assertion holds. */
export const eventuallyTrue = (assertion: () => void, within?: Duration.Input): Effect.Effect<void> =>
  eventually(Effect.sync(assertion), within)

/** Long enough for an unwanted event to happen. */
export const quietTime = Effect.sleep("1500 millis")

/** The failure of an effect that must fail, within the longest wait. */
export const failure = <A, R>(
  effect: Effect.Effect<A, BrokerError.BrokerError, R>
): Effect.Effect<BrokerError.BrokerError, never, R> =>
  effect.pipe(
    Effect.flip,
    Effect.timeoutOrElse({
      duration: longestWait,
      orElse: () => Effect.die(new Error("it neither failed nor succeeded"))
    }),
    Effect.catch((value) => Effect.die(new Error(`it succeeded with ${String(value)}`)))
  )

/** Asserts the `_tag` of an error. */
export const assertTag = (
  error: BrokerError.BrokerError,
  ...tags: ReadonlyArray<BrokerError.BrokerError["_tag"]>
): void => assert.include(tags, error._tag, error.message)

/** An admin client of the cluster under test. */
export const admin = Effect.flatMap(Broker.Broker, (broker) => broker.admin)

/** A producer of the cluster under test, with default options. */
export const producer = Effect.flatMap(Broker.Broker, (broker) => broker.producer())

/** A transactional producer of the cluster under test, with a unique id by default. */
export const transactional = (transactionalId = unique("tx")) =>
  Effect.flatMap(Broker.Broker, (broker) => eventually(broker.transactionalProducer({ transactionalId })))

/** Creates a topic with a unique name and waits until it can be used. */
export const topic = Effect.fnUntraced(function* (
  partitions = 1,
  config: ReadonlyMap<string, string> = new Map()
): Effect.fn.Return<string, BrokerError.BrokerError, Broker.Broker | Scope.Scope> {
  const name = unique("topic")
  const administrator = yield* admin
  yield* administrator.createTopics([{ topic: name, partitions, config }])
  yield* usable(administrator, name, partitions)
  return name
})

/** A broker answers for a new topic only a little after it has accepted it. */
export const usable = (
  administrator: Broker.Admin,
  name: string,
  partitions: number
): Effect.Effect<void, BrokerError.BrokerError> =>
  eventually(Effect.map(administrator.topicOffsets(name), (offsets) => assert.strictEqual(offsets.length, partitions)))

/** Configuration of a topic that keeps records of any age. */
export const neverExpires: ReadonlyMap<string, string> = new Map([["retention.ms", "-1"]])

/** A record with a text value, to partition 0 by default. */
export const record = (
  topic: string,
  value: string,
  more: Partial<ConsumerRecord.ProducerRecord> = {}
): ConsumerRecord.ProducerRecord => ({ topic, key: null, value: utf8(value), partition: 0, ...more })

/** Publishes texts to one partition, in order. */
export const publish = (
  topic: string,
  values: ReadonlyArray<string>,
  partition = 0
): Effect.Effect<ReadonlyArray<ConsumerRecord.RecordMetadata>, BrokerError.BrokerError, Broker.Broker> =>
  Effect.scoped(
    Effect.flatMap(producer, ({ sendAll }) => sendAll(values.map((value) => record(topic, value, { partition }))))
  )

/** `count` texts with a common prefix: `prefix-0`, `prefix-1`, … */
export const texts = (prefix: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
