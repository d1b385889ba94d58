/**
 * The connector for programs without Effect: plain options, promises, and the terms of Kafka and Node.js. It runs on the layers that Effect programs use.
 *
 * ```ts
 * import { consumer, createEventBus, Serde } from "@eventbus/node"
 *
 * const bus = createEventBus({
 *   kafka: { brokers: ["localhost:9092"] },
 *   consumers: {
 *     orders: consumer({
 *       topic: "orders",
 *       groupId: "billing",
 *       value: Serde.string,
 *       handler: async ({ value }, { signal }) => {
 *         await fetch("https://billing.example/charge", { method: "POST", body: value, signal })
 *       }
 *     })
 *   }
 * })
 *
 * await bus.start() // SIGTERM lets running handlers end, commits, and leaves the group
 * ```
 */
import { type ConsumerRecord, EventBusConnector, type Replay, type ReplayRun, type Snapshot } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { BusHealth } from "./BusHealth.ts"
import { BusOutboxState } from "./BusOutbox.ts"
import { NotReady } from "./EventBusErrors.ts"
import type { EventBusOptions } from "./EventBusOptions.ts"
import { busHealth, draining } from "./internal/busHealth.ts"
import * as Lifecycle from "./internal/lifecycle.ts"
import { millisOf } from "./internal/millisOf.ts"
import * as Program from "./internal/program.ts"
import { promised } from "./internal/promised.ts"
import { Publishing } from "./internal/publishing.ts"
import * as Signals from "./internal/signals.ts"
import type { DurationValue, Promised } from "./PlainValues.ts"
import type { Message, TextOrBytes, Topic } from "./Topic.ts"

/** Options of `publish` and `publishAll`. */
export interface PublishOptions {
  /** The alias of the cluster. Default `default`. */
  readonly cluster?: string
}

/** Options of `deadLetters` and `runs`. */
export interface TopicOptions {
  /** One of the topics of the consumer: the dead letters of its records alone. Default: those of all topics. */
  readonly topic?: string
}

/** A bus. Methods reject with the typed errors of the core, which are instances of `Error`, and with `EventBusNotRunning` while the bus does not run. */
export interface EventBus {
  /**
   * Checks all options, registers the consumers and starts them. Joining the groups goes on in the background, also while the cluster is away: see `ready`. Rejects with
   * `ConfigurationValidation`, which lists all mistakes, and with `StartInterrupted`; then nothing runs, and the bus can be started again. A bus that runs answers with the
   * promise of its start. A stopped one starts anew.
   */
  readonly start: () => Promise<void>
  /** Fulfils when each consumer has joined its group and nothing holds it. Rejects with `NotReady`, which says why, after the timeout: default 30 seconds. */
  readonly ready: (options?: { readonly timeout?: DurationValue }) => Promise<void>
  /**
   * Lets running handlers end, commits, and leaves the groups, within the `shutdownTimeout` of each consumer. Handlers that still run after four fifths of it are aborted. Calls
   * beside the first answer its promise; a bus that does not run is stopped already.
   */
  readonly stop: () => Promise<void>
  /** How the bus is now. */
  readonly health: () => BusHealth
  /** Publishes one message: to a topic of `defineTopic`, or to a topic by name, whose keys and values are text or bytes. Fulfils when the brokers have acknowledged it. */
  publish(
    topic: string,
    message: Message<TextOrBytes, TextOrBytes>,
    options?: PublishOptions
  ): Promise<ConsumerRecord.RecordMetadata>
  /** Publishes one message to a topic with serdes. Rejects with `EncodeFailure` for a value that does not fit. */
  publish<K, V>(
    topic: Topic<K, V>,
    message: Message<NoInfer<K>, NoInfer<V>>,
    options?: PublishOptions
  ): Promise<ConsumerRecord.RecordMetadata>
  /** Publishes several messages to a topic by name, in order. All are encoded before the first is sent. */
  publishAll(
    topic: string,
    messages: ReadonlyArray<Message<TextOrBytes, TextOrBytes>>,
    options?: PublishOptions
  ): Promise<ReadonlyArray<ConsumerRecord.RecordMetadata>>
  /** Publishes several messages to a topic with serdes, in order. All are encoded before the first is sent. */
  publishAll<K, V>(
    topic: Topic<K, V>,
    messages: ReadonlyArray<Message<NoInfer<K>, NoInfer<V>>>,
    options?: PublishOptions
  ): Promise<ReadonlyArray<ConsumerRecord.RecordMetadata>>
  /** Holds a consumer, or one of its retry topics: it stays in the group, fetches and handles nothing. */
  readonly pause: (consumer: string, options?: EventBusConnector.TierOptions) => Promise<void>
  /** Lifts the pause. */
  readonly resume: (consumer: string, options?: EventBusConnector.TierOptions) => Promise<void>
  /**
   * The commands on the dead letters of a consumer: lists, replays, discards, statistics, rehearsals. A consumer of several topics needs `topic` for all but lists and figures.
   * Rejects with `InvalidArgument` for a topic that the consumer does not read.
   */
  readonly deadLetters: (
    consumer: string,
    options?: TopicOptions
  ) => Promise<Promised<Omit<Replay.DeadLetters, "ofTopic">>>
  /**
   * Plans over the dead letters of a consumer, and their runs. A consumer of several topics needs `topic` for a plan. Rejects with `InvalidArgument` for a topic that the
   * consumer does not read.
   */
  readonly runs: (consumer: string, options?: TopicOptions) => Promise<Promised<Omit<ReplayRun.Runs, "ofTopic">>>
  /** A consumer as it is now, its partitions with their lag included. */
  readonly snapshot: (consumer: string) => Promise<Snapshot.BindingSnapshot>
  /** All commands of the connector. Each rejects with `EventBusNotRunning` while the bus does not run. */
  readonly commands: () => Promise<Promised<Commands>>
}

type Commands = Omit<
  EventBusConnector.EventBusConnector["Service"],
  "register" | "subscribe" | "events" | "changes" | "deadLetters" | "runs"
>

/** Makes a bus. Nothing is checked and nothing runs before `start`. */
export const createEventBus = (options: EventBusOptions): EventBus => {
  const { signals = ["SIGTERM", "SIGINT"] } = options
  const lifecycle: Lifecycle.Lifecycle<Program.Services> = Lifecycle.make(Program.layer(options), () =>
    Signals.onSignals(signals, () => lifecycle.stop())
  )
  const { start, stop, run } = lifecycle
  const connector = <A, E>(
    operation: string,
    use: (connector: EventBusConnector.EventBusConnector["Service"]) => Effect.Effect<A, E>
  ) => run(operation, EventBusConnector.EventBusConnector.use(use))
  const health = (): BusHealth => {
    const services = lifecycle.services()
    if (services === undefined) return notRunning
    const now = Effect.runSyncWith(services)(EventBusConnector.EventBusConnector.use(({ health }) => health))
    return busHealth(
      lifecycle.isStopping() ? draining(now) : now,
      Object.keys(options.consumers ?? {}).length > 0,
      options.outbox && Context.get(services, BusOutboxState)
    )
  }
  return {
    start,
    stop,
    health,
    ready: ({ timeout = 30_000 } = {}) => run("ready", untilReady(health, timeout)),
    publish: <K, V>(topic: string | Topic<K, V>, message: Message<K, V>, { cluster }: PublishOptions = {}) =>
      run(
        "publish",
        Publishing.use(({ to }) => to(topic, cluster).publish(message))
      ),
    publishAll: <K, V>(
      topic: string | Topic<K, V>,
      messages: ReadonlyArray<Message<K, V>>,
      { cluster }: PublishOptions = {}
    ) =>
      run(
        "publishAll",
        Publishing.use(({ to }) => to(topic, cluster).publishAll(messages))
      ),
    pause: (consumer, tier) => connector("pause", ({ pause }) => pause(consumer, tier)),
    resume: (consumer, tier) => connector("resume", ({ resume }) => resume(consumer, tier)),
    snapshot: (consumer) => connector("snapshot", ({ snapshot }) => snapshot(consumer)),
    deadLetters: async (consumer, { topic } = {}) => {
      const found = await connector("deadLetters", ({ deadLetters }) => ofTopic(deadLetters(consumer), topic))
      return promised(found, (effect) => run("deadLetters", effect))
    },
    runs: async (consumer, { topic } = {}) => {
      const found = await connector("runs", ({ runs }) => ofTopic(runs(consumer), topic))
      return promised(found, (effect) => run("runs", effect))
    },
    commands: async () =>
      promised<Commands>(await connector("commands", Effect.succeed), (effect) => run("commands", effect))
  }
}

/** The commands on one topic, without the member that answers with effects. */
const ofTopic = <A extends OfTopic<A>, E>(
  found: Effect.Effect<A, E>,
  topic: string | undefined
): Effect.Effect<Omit<A, "ofTopic">, E | Replay.InvalidArgument> =>
  Effect.map(
    Effect.flatMap(found, (all) => (topic === undefined ? Effect.succeed(all) : all.ofTopic(topic))),
    ({ ofTopic: _, ...commands }) => commands
  )

interface OfTopic<A> {
  readonly ofTopic: (topic: string) => Effect.Effect<A, Replay.InvalidArgument>
}

const notRunning: BusHealth = {
  status: "DOWN",
  live: true,
  ready: false,
  reasons: [{ type: "NotRunning", message: "The event bus does not run" }]
}

const untilReady = (health: () => BusHealth, timeout: DurationValue): Effect.Effect<void, NotReady> => {
  const millis = millisOf(timeout)
  const poll = Effect.gen(function* () {
    while (!health().ready) yield* Effect.sleep("20 millis")
  })
  return Effect.catchTag(Effect.timeout(poll, millis), "TimeoutError", () =>
    Effect.fail(new NotReady({ timeoutMillis: millis, reasons: health().reasons.map(({ message }) => message) }))
  )
}
