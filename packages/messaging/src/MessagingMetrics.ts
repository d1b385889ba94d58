/**
 * The metrics of messages, per topic: `{broker}.messaging.messages.sent` and so on, with the broker's kind in lower case, so `kafka.messaging.…` on Kafka. Producers and consumers of this package record them. A series is made with its first value, in Effect's `Metric` registry.
 *
 * Each series has the labels `topic` and `operation`.
 */
import * as Metrics from "@eventbus/core/Metrics"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { counters, timers } from "./internal/metricNames.ts"
import type { MessageBrokerType } from "./MessageBrokerType.ts"

/** Upper bounds of the buckets of a timer, in seconds: from 1 ms to 30 s. */
const boundaries = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** A timer that runs: when it was started, on the monotonic clock. */
export interface Timer {
  /** Nanoseconds of the monotonic clock. */
  readonly startedNanos: bigint
}

/** Records the metrics of one broker. */
export interface MessagingMetrics {
  /** Starts a timer of a send. */
  readonly startSendTimer: Effect.Effect<Timer>
  /** Records the time since the start as the latency of a send to this topic. */
  readonly stopSendTimer: (timer: Timer, topic: string) => Effect.Effect<void>
  /** Starts a timer of a handler. */
  readonly startProcessTimer: Effect.Effect<Timer>
  /** Records the time since the start as the time that a handler took for messages of this topic. */
  readonly stopProcessTimer: (timer: Timer, topic: string) => Effect.Effect<void>
  /** Counts a message that the broker acknowledged. */
  readonly recordMessageSent: (topic: string) => Effect.Effect<void>
  /** Counts messages that a handler has handled. Default: one. */
  readonly recordMessageReceived: (topic: string, count?: number) => Effect.Effect<void>
  /** Counts a send that failed. */
  readonly recordMessageFailed: (topic: string) => Effect.Effect<void>
  /** Counts a message that was dead-lettered. */
  readonly recordMessageDlq: (topic: string) => Effect.Effect<void>
  /** The same without an effect, for code that runs per message. */
  readonly unsafe: Unsafe
}

/** Records at once, outside of an effect. */
export interface Unsafe {
  /** Adds to a counter. */
  readonly count: (operation: keyof typeof counters, topic: string, by: number) => void
  /** Records a time in seconds. */
  readonly time: (operation: keyof typeof timers, topic: string, seconds: number) => void
}

/** The metrics of a kind of broker. Two calls for one kind record the same series. */
export const make = (type: MessageBrokerType): Effect.Effect<MessagingMetrics> =>
  Effect.context<never>().pipe(
    Effect.map((context) => {
      const unsafe = unsafeIn(context, `${type.toLowerCase()}.messaging`)
      const count =
        (operation: keyof typeof counters) =>
        (topic: string, by = 1) =>
          Effect.sync(() => unsafe.count(operation, topic, by))
      const stop = (operation: keyof typeof timers) => (timer: Timer, topic: string) =>
        Effect.map(now, (nanos) => unsafe.time(operation, topic, Number(nanos - timer.startedNanos) / 1e9))
      return {
        startSendTimer: started,
        stopSendTimer: stop("send"),
        startProcessTimer: started,
        stopProcessTimer: stop("process"),
        recordMessageSent: count("sent"),
        recordMessageReceived: count("received"),
        recordMessageFailed: count("failed"),
        recordMessageDlq: count("dlq"),
        unsafe
      }
    })
  )

const now = Clock.monotonicTimeNanos
const started: Effect.Effect<Timer> = Effect.map(now, (startedNanos) => ({ startedNanos }))

type Registry = (typeof Metric.MetricRegistry)["Service"]

/** The recorders of each registry by prefix: two of them for one series would show only the second one's numbers. */
const recorders = new WeakMap<Registry, Map<string, Unsafe>>()

const unsafeIn = (context: Context.Context<never>, prefix: string): Unsafe => {
  const registry = Context.get(context, Metric.MetricRegistry)
  const known = recorders.get(registry) ?? new Map<string, Unsafe>()
  recorders.set(registry, known)
  const recorder = known.get(prefix) ?? recorderIn(context, prefix)
  known.set(prefix, recorder)
  return recorder
}

/** Series are registered with their first value, and read when somebody looks at them: recording is an addition. */
const recorderIn = (context: Context.Context<never>, prefix: string): Unsafe => {
  const register = <State>(metric: Metric.Metric<number, State>, get: () => State) =>
    Metric.registerUnsafe(metric, context, { get, update: ignored, modify: ignored })
  const countersOf = perTopic((operation: keyof typeof counters, topic) => {
    const { suffix, description } = counters[operation]
    const series = { count: 0, incremental: true }
    const options = { description, attributes: { topic, operation }, incremental: true }
    register(Metric.counter(`${prefix}.${suffix}`, options), () => series)
    return series
  })
  const timersOf = perTopic((operation: keyof typeof timers, topic) => {
    const { suffix, description } = timers[operation]
    const series = Metrics.makeHistogram(boundaries)
    const options = { description, attributes: { topic, operation, unit: "s" }, boundaries }
    register(Metric.histogram(`${prefix}.${suffix}`, options), series.state)
    return series
  })
  return {
    count: (operation, topic, by) => {
      countersOf(operation, topic).count += by
    },
    time: (operation, topic, seconds) => timersOf(operation, topic).observe(seconds)
  }
}

const ignored = () => {}

/** One series for each operation and topic, made with its first value. */
const perTopic = <Operation extends string, Series>(make: (operation: Operation, topic: string) => Series) => {
  const made = new Map<string, Series>()
  let last: { readonly operation: Operation; readonly topic: string; readonly series: Series } | undefined
  return (operation: Operation, topic: string): Series => {
    // Successive messages are mostly of one topic.
    if (last?.topic === topic && last.operation === operation) return last.series
    const key = `${operation}/${topic}`
    const series = made.get(key) ?? make(operation, topic)
    made.set(key, series)
    last = { operation, topic, series }
    return series
  }
}
