/**
 * How often, and after which waits, a message that failed is tried again, in words that name no broker. Each broker keeps
 * the waits by its own means: Kafka in the topic `{topic}-retry`, RabbitMQ in one queue for each wait. A message that is given up goes to `{topic}-dlq`.
 */
import type { Failure } from "@eventbus/core/Failure"
import * as Kinds from "@eventbus/core/Kinds"
import * as Ranges from "@eventbus/core/Ranges"
import * as RetryPolicy from "@eventbus/core/RetryPolicy"
import type { Time } from "@eventbus/core/Time"

/** Settings of a retry, each with a default. */
export interface Options {
  /** Tries of a message in all, the first one included. 1 or more; 1 means no retry. Default 3. */
  readonly maxAttempts?: number
  /** The wait after the first failure. 1 ms or more. Default 1 second. */
  readonly initialInterval?: Time
  /** Factor from one wait to the next, 1 or more. Default 2. */
  readonly multiplier?: number
  /** The longest single wait, at least `initialInterval`. Default 30 seconds. */
  readonly maxInterval?: Time
  /** The longest that all waits of a message may take together: it ends the retries where it comes before `maxAttempts`. Default `maxInterval` times `maxAttempts`. */
  readonly maxElapsed?: Time
  /**
   * True: a message waits in a retry topic or queue, and those behind it go on. False: it waits where it is, and the messages behind it of its partition, or of its consumer,
   * wait too. Default true.
   */
  readonly retryTopicsEnabled?: boolean
  /**
   * Errors that no further try can cure, by class name or `_tag`, also as one of the causes. Their messages are dead-lettered at once. It replaces the default, which is
   * `nonRetryable`. An error that says `retryable: false` of itself, and a payload that cannot be decoded, are never tried again, whatever the list says.
   */
  readonly nonRetryable?: ReadonlyArray<string>
}

/** A retry, checked and complete. */
export interface MessageRetry {
  /** Tries in all, 1 or more. */
  readonly maxAttempts: number
  /** The waits between the tries, in milliseconds: as many as `maxAttempts` - 1, after the time limit has cut them. */
  readonly waits: ReadonlyArray<number>
  /** The first wait, in milliseconds. */
  readonly initialIntervalMillis: number
  /** Factor from one wait to the next. */
  readonly multiplier: number
  /** The longest single wait, in milliseconds. */
  readonly maxIntervalMillis: number
  /** The longest that all waits may take together, in milliseconds. */
  readonly maxElapsedMillis: number
  /** Whether a message waits in a retry topic or queue. */
  readonly retryTopicsEnabled: boolean
  /** Class names of errors that no further try can cure. */
  readonly nonRetryable: ReadonlyArray<string>
}

/**
 * The errors of a wrong argument, a missing value and a wrong type: Java's `IllegalArgumentException`, `NullPointerException` and `ClassCastException`, and what they are in
 * TypeScript. V8 raises `TypeError` for a property of null and for a value of a wrong type, `RangeError` for an argument out of range; `SchemaError` is Effect's.
 */
export const nonRetryable: ReadonlyArray<string> = [
  "IllegalArgumentException",
  "NullPointerException",
  "ClassCastException",
  "IllegalArgumentError",
  "TypeError",
  "RangeError",
  "SchemaError"
]

const wait: Ranges.Range = { minimum: 1, maximum: 2_147_483_647, kind: "duration" }

const table = {
  maxAttempts: { minimum: 1, maximum: 1_000, kind: "whole" },
  initialInterval: wait,
  multiplier: Ranges.retry.blocking.multiplier,
  maxInterval: wait,
  maxElapsed: { ...wait, maximum: Number.MAX_SAFE_INTEGER },
  retryTopicsEnabled: Kinds.flag,
  nonRetryable: Kinds.listOf(Kinds.name, "a list of class names")
} as const

/** The settings of a retry as a kind, for options that hold some. */
export const kind: Kinds.Kind = Kinds.struct(table)

/** A retry from its settings. Throws `ConfigurationValidation` that names every setting that is out of its range. */
export const make = (options: Options = {}): MessageRetry => {
  Kinds.refuse(kind("retry", options))
  const { maxAttempts = 3, multiplier = 2, retryTopicsEnabled = true } = options
  const initial = Ranges.millisOf(options.initialInterval ?? 1_000)
  const longest = Ranges.millisOf(options.maxInterval ?? 30_000)
  const allowed = `a duration of initialInterval (${initial} ms) or more`
  Kinds.refuse(longest < initial ? [{ path: "retry.maxInterval", found: `${longest} ms`, allowed }] : [])
  const limit = options.maxElapsed === undefined ? longest * maxAttempts : Ranges.millisOf(options.maxElapsed)
  const waits = waitsWithin(limit, maxAttempts - 1, { initial, multiplier, longest })
  return {
    ...{ maxAttempts: waits.length + 1, waits, initialIntervalMillis: initial, multiplier },
    ...{ maxIntervalMillis: longest, maxElapsedMillis: limit, retryTopicsEnabled },
    nonRetryable: options.nonRetryable ?? nonRetryable
  }
}

/** The waits of a retry tier that grows, as many as fit into the limit. */
const waitsWithin = (
  limit: number,
  count: number,
  { initial, multiplier, longest }: { readonly initial: number; readonly multiplier: number; readonly longest: number }
): ReadonlyArray<number> => {
  if (count === 0) return []
  const { tiers } = RetryPolicy.fixedDelay({ delay: initial, multiplier, maxDelay: longest, maxAttempts: count })
  const { delayMillis, laterDelaysMillis = [] } = tiers[0]!
  const delays = [delayMillis, ...laterDelaysMillis]
  const waits: Array<number> = []
  let sum = 0
  while (waits.length < count) {
    const next = delays[Math.min(waits.length, delays.length - 1)]!
    sum += next
    if (sum > limit) break
    waits.push(next)
  }
  return waits
}

/** Whether another try may cure a failure: not one that says `retryable: false` of itself, and none whose class, or that of one of its causes, is listed. */
export const mayCure = ({ nonRetryable: names }: MessageRetry, failure: Failure): boolean =>
  !(saysNo(failure.error) || [failure, ...failure.causes].some(({ className }) => names.includes(className)))

/** The next step of a message whose try number `attempt` (from 1) failed: the wait before the next try in milliseconds, or undefined for the dead letters. */
export const waitAfter = (retry: MessageRetry, attempt: number): number | undefined => retry.waits[attempt - 1]

const saysNo = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "retryable" in error && error.retryable === false
