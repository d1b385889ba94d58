/**
 * Every test here starts from this: a connector on a real Kafka, a journal of its events, and questions to the cluster itself.
 *
 * Time is real: every wait has a deadline, and nothing sleeps for a fixed time.
 */
import { it } from "@effect/vitest"
import {
  type Binding,
  Broker,
  type BrokerError,
  type ConsumerRecord,
  EventBusConnector,
  type EventBusEvent
} from "@eventbus/core"
import type { KafkaJs } from "@eventbus/kafkajs"
import { Context, Duration, Effect, Exit, Layer, Logger, Scope } from "effect"
import * as Transport from "../transport.ts"

type Event = EventBusEvent.EventBusEvent
type Tag = Event["_tag"]
export type EventOf<T extends Tag> = Extract<Event, { readonly _tag: T }>

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
export const text = (value: Uint8Array | null | undefined): string | null =>
  value === null || value === undefined ? null : new TextDecoder().decode(value)

/** Of a story that waits most of its time: it runs beside the other stories of its file that do. */
export const waiting = { timeout: 120_000, concurrent: true } as const

/** One story on the run's shared Kafka. A number is its timeout in milliseconds. */
export const story = <E>(
  bootstrap: ReadonlyArray<string>,
  title: string,
  body: () => Effect.Effect<void, E, Broker.Broker | Scope.Scope>,
  options: number | typeof waiting = 120_000
): void => it.live(title, () => on({ brokers: bootstrap }, body()), options)

/** Runs something on the cluster that the options lead to. Nothing is connected before it is used. */
export const on = <A, E, R>(options: KafkaJs.Options, effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, Broker.Broker, Transport.make(options))

let sequence = 0
/** A name that no other story has, nor an earlier run on the same cluster. */
export const fresh = (name: string): string =>
  `${name}-${Date.now().toString(36)}-${process.pid.toString(36)}-${(sequence++).toString(36)}`

/** Looks again and again until it is so; dies when it is not so in time, saying what is the case instead. */
export const until = Effect.fnUntraced(function* <E = never, R = never>(
  what: string,
  look: Effect.Effect<boolean, E, R> | (() => boolean),
  options: { readonly within?: Duration.Input; readonly otherwise?: () => unknown } = {}
) {
  const within = Duration.fromInputUnsafe(options.within ?? "45 seconds")
  const deadline = performance.now() + Duration.toMillis(within)
  const seen = typeof look === "function" ? Effect.sync(look) : look
  while (!(yield* seen)) {
    if (performance.now() > deadline) {
      const instead = options.otherwise === undefined ? "" : `; instead: ${show(options.otherwise())}`
      return yield* Effect.die(new Error(`not within ${Duration.format(within)}: ${what}${instead}`))
    }
    // Asking the cluster costs it something; asking this process does not.
    yield* Effect.sleep(typeof look === "function" ? "20 millis" : "150 millis")
  }
})

const show = (value: unknown): string =>
  typeof value === "string"
    ? value
    : JSON.stringify(value, (_, each) =>
        typeof each === "bigint" ? `${each}` : each instanceof Map ? Array.from(each) : each
      )

/** A line of the log, at info or above. */
export interface Line {
  readonly level: string
  readonly message: string
}

/** A connector of its own: one process of an application. */
export interface App {
  readonly connector: EventBusConnector.EventBusConnector["Service"]
  readonly events: ReadonlyArray<Event>
  readonly of: <T extends Tag>(tag: T) => ReadonlyArray<EventOf<T>>
  readonly log: ReadonlyArray<Line>
  readonly register: <R>(binding: Binding.Binding<R>) => Effect.Effect<void, never, R | Broker.Broker>
  /** A graceful shutdown. */
  readonly close: Effect.Effect<void>
}

/** Starts bindings in one connector. Closed with the test, unless it was closed before. */
export const start = <R = never>(
  ...bindings: ReadonlyArray<Binding.Binding<R>>
): Effect.Effect<App, never, R | Broker.Broker | Scope.Scope> =>
  Effect.tap(app, ({ register }) => Effect.forEach(bindings, register, { discard: true }))

const app = Effect.gen(function* () {
  const scope = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
  const log: Array<Line> = []
  const capture = Logger.layer([
    Logger.make(({ logLevel, message }) =>
      log.push({ level: logLevel, message: [message].flat().map(String).join(" ") })
    )
  ])
  const context = yield* Layer.buildWithScope(EventBusConnector.layer, scope).pipe(Effect.provide(capture))
  const connector = Context.get(context, EventBusConnector.EventBusConnector)
  const events: Array<Event> = []
  yield* Scope.provide(
    connector.subscribe((event) => events.push(event)),
    scope
  )
  const app: App = {
    connector,
    events,
    of: <T extends Tag>(tag: T) => events.filter((event): event is EventOf<T> => event._tag === tag),
    log,
    register: (binding) => connector.register(binding).pipe(Effect.orDie, Effect.provide(capture)),
    close: Scope.close(scope, Exit.void)
  }
  return app
})

const admin = <A>(use: (admin: Broker.Admin) => Effect.Effect<A, BrokerError.BrokerError>) =>
  Effect.scoped(Effect.flatMap(Broker.Broker, (broker) => Effect.flatMap(broker.admin, use)))

export const withAdmin = admin

export const createTopic = (topic: string, partitions = 1, config: Readonly<Record<string, string>> = {}) =>
  admin(({ createTopics }) => createTopics([{ topic, partitions, config: new Map(Object.entries(config)) }]))

/** Publishes in order, acknowledged. */
export const publish = (records: ReadonlyArray<ConsumerRecord.ProducerRecord>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const producer = yield* (yield* Broker.Broker).producer()
      return yield* producer.sendAll(records)
    })
  )

/** `count` records with values `from`, `from + 1`, … dealt out over the partitions. */
export const numbered = (topic: string, partitions: number, count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({
    topic,
    partition: (from + index) % partitions,
    key: null,
    value: bytes(String(from + index))
  }))

/** By partition: what the group has committed. */
export const committed = (groupId: string, topic: string) =>
  admin(({ committedOffsets }) => committedOffsets(groupId, [topic])).pipe(
    Effect.map((offsets) => new Map(offsets.map(({ partition, offset }) => [partition, offset])))
  )

/** By partition: where the log ends. */
export const logEnds = (topic: string) =>
  admin(({ topicOffsets }) => topicOffsets(topic)).pipe(
    Effect.map((offsets) => new Map(offsets.map(({ partition, logEnd }) => [partition, logEnd])))
  )

/** Records behind the committed offsets, control records included; a partition without a commit counts from its start. */
export const lag = (groupId: string, topic: string) =>
  Effect.gen(function* () {
    const offsets = yield* committed(groupId, topic)
    const bounds = yield* admin(({ topicOffsets }) => topicOffsets(topic))
    return bounds.reduce(
      (sum, { partition, logStart, logEnd }) => sum + logEnd - (offsets.get(partition) ?? logStart),
      0n
    )
  })

export const lagIsZero = (groupId: string, topic: string, within: Duration.Input = "45 seconds") =>
  until(
    `lag of ${groupId} is 0`,
    Effect.map(lag(groupId, topic), (records) => records === 0n),
    { within }
  )

/** Every record of a topic that a reader of this isolation sees now. Waits for transactions that have not ended. */
export const readAll = Effect.fnUntraced(
  function* (topic: string, isolation: "read_committed" | "read_uncommitted" = "read_committed") {
    const logs = yield* admin(({ topicOffsets }) => topicOffsets(topic))
    const { read } = yield* (yield* Broker.Broker).reader({ isolationLevel: isolation })
    const records: Array<ConsumerRecord.ConsumerRecord> = []
    for (const { partition, logStart, logEnd } of logs) {
      let offset = logStart
      while (offset < logEnd) {
        const found = yield* read({ topic, partition, offset })
        if (found._tag !== "Fetched")
          return yield* Effect.die(new Error(`${topic}-${partition}@${offset}: ${found._tag}`))
        records.push(...found.chunk.records)
        offset = found.chunk.nextOffset
      }
    }
    return records
  },
  Effect.scoped,
  Effect.timeoutOrElse({ duration: "60 seconds", orElse: () => Effect.die(new Error("the topic could not be read")) })
)
