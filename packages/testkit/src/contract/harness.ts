/**
 * What the outcomes are written with: names of their own, topics, records, and waiting that works on both clocks.
 *
 * Nothing here knows which clock it is on: virtual time jumps while a test waits, on a real cluster it is real time. A wait ends as
 * soon as what it waits for is true.
 */
import { Broker, type BrokerError, type ConsumerRecord } from "@eventbus/core"
import { Cause, Clock, Duration, Effect, Exit, type Scope } from "effect"
import { assert } from "vitest"

/** What differs between adapters for good reason. */
export interface Capabilities {
  /** `all`: headers keep their order. `same-name`: only values of one name do (kafkajs keeps headers in an object). */
  readonly headerOrder: "all" | "same-name"
  /** A partition that stays with its member over a rebalance is `untouched`, or `revoked` and assigned again (eager). */
  readonly staying: "untouched" | "revoked"
  /** A revoked partition moves once it is `released`, or `at-once` because the client cannot hold up a rejoin. */
  readonly handover: "released" | "at-once"
  readonly staticMembership: "supported" | "none"
}

/** One outcome of the contract: what must be true, and a program that dies when it is not. */
export interface Outcome {
  readonly title: string
  /** Runs only where this holds. Default: everywhere. */
  readonly needs?: (capabilities: Capabilities) => boolean
  readonly run: Effect.Effect<void, BrokerError.BrokerError, Broker.Broker | Scope.Scope>
}

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

export const text = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : new TextDecoder().decode(bytes)

/** A name that nobody else uses, also on a cluster that is shared. */
export const unique = (what: string): string => `contract-${what}-${crypto.randomUUID()}`

/** How long anything may take before the outcome counts as missed. */
export const patience: Duration.Input = "25 seconds"

/** Waits until the check passes: it neither fails nor dies. What it said last is what is reported when it never does. */
export const eventually = <A, E, R>(
  check: Effect.Effect<A, E, R>,
  within: Duration.Input = patience
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

/** Long enough for anything that should not happen to happen. */
export const quietTime = Effect.sleep("1500 millis")

/** The failure of an effect that must fail, within the usual patience. */
export const failure = <A, R>(
  effect: Effect.Effect<A, BrokerError.BrokerError, R>
): Effect.Effect<BrokerError.BrokerError, never, R> =>
  effect.pipe(
    Effect.flip,
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => Effect.die(new Error("it neither failed nor succeeded"))
    }),
    Effect.catch((value) => Effect.die(new Error(`it succeeded with ${String(value)}`)))
  )

export const assertTag = (
  error: BrokerError.BrokerError,
  ...tags: ReadonlyArray<BrokerError.BrokerError["_tag"]>
): void => assert.include(tags, error._tag, error.message)

/** An administrator of the cluster under test. */
export const admin = Effect.flatMap(Broker.Broker, (broker) => broker.admin)

/** A producer of the cluster under test, with its defaults. */
export const producer = Effect.flatMap(Broker.Broker, (broker) => broker.producer())

/** Makes a topic of its own and waits until it can be used. */
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

/** A broker answers for a new topic a little after it accepted it. */
export const usable = (
  administrator: Broker.Admin,
  name: string,
  partitions: number
): Effect.Effect<void, BrokerError.BrokerError> =>
  eventually(Effect.map(administrator.topicOffsets(name), (offsets) => assert.strictEqual(offsets.length, partitions)))

/** Configuration of a topic whose records may be as old as they like. */
export const neverExpires: ReadonlyMap<string, string> = new Map([["retention.ms", "-1"]])

/** A record with text for a value, to partition 0 unless told otherwise. */
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

/** `count` texts that begin alike: `prefix-0`, `prefix-1`, … */
export const texts = (prefix: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
