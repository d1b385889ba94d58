/**
 * How often, and how far apart, a failing record is tried again.
 */
import { Duration, Option, Schema } from "effect"
import type { BackoffPolicy } from "./internal/backoff.ts"

/** Settings outside of what is allowed; all of them at once. */
export class InvalidRetryPolicy extends Schema.TaggedError<InvalidRetryPolicy>()("InvalidRetryPolicy", {
  issues: Schema.Array(
    Schema.Struct({
      /** The setting, such as `blocking.maxAttempts`. */
      path: Schema.String,
      /** What was given, as text. */
      found: Schema.String,
      /** What is allowed. */
      allowed: Schema.String
    })
  )
}) {
  readonly retryable = false
  override get message(): string {
    return this.issues.map(({ path, found, allowed }) => `${path} is ${found}; allowed: ${allowed}`).join("\n")
  }
}

export interface RetryPolicy {
  /** Tier 0: attempts inside one delivery. The partition (or key) waits meanwhile. */
  readonly blocking: BackoffPolicy
}

export interface BlockingOptions {
  /** Handler calls in all, the first included. A whole number, 1 or more; 1 means no retries. Default 3. */
  readonly maxAttempts?: number
  /** Wait after the first failure. Zero or more, 2^53 - 1 ms at most. Default 100 millis. */
  readonly initialInterval?: Duration.Input
  /** Factor from one wait to the next. 1 or more, finite; 1 keeps the wait constant. Default 2. */
  readonly multiplier?: number
  /** Cap of a single wait, the first and jitter included. Zero or more, 2^53 - 1 ms at most. Default 2 seconds. */
  readonly maxInterval?: Duration.Input
  /** A wait varies by up to this share of itself, either way. 0 (exact waits) to 1. Default 0.2. */
  readonly jitter?: number
}

/** One attempt, no retries. */
export const none: RetryPolicy = {
  blocking: { maxAttempts: 1, initialIntervalMillis: 0, multiplier: 1, maxIntervalMillis: 0, jitter: 0 }
}

/**
 * Retries in place, in order, with exponential waits between the attempts. By default: 3 attempts, about 100 and 200 ms apart.
 * Throws `InvalidRetryPolicy`, naming every setting that is not allowed.
 */
export const blocking = (options: BlockingOptions = {}): RetryPolicy => {
  const {
    maxAttempts = 3,
    initialInterval = "100 millis",
    multiplier = 2,
    maxInterval = "2 seconds",
    jitter = 0.2
  } = options
  const initialIntervalMillis = toMillis(initialInterval)
  const maxIntervalMillis = toMillis(maxInterval)
  const interval = "a duration of 0 or more, 2^53 - 1 ms at most"
  const issues = [
    issue(
      "maxAttempts",
      maxAttempts,
      Number.isSafeInteger(maxAttempts) && maxAttempts >= 1,
      "a whole number, 1 or more"
    ),
    issue("initialInterval", initialInterval, initialIntervalMillis >= 0, interval),
    issue("multiplier", multiplier, Number.isFinite(multiplier) && multiplier >= 1, "a finite number, 1 or more"),
    issue("maxInterval", maxInterval, maxIntervalMillis >= 0, interval),
    issue("jitter", jitter, Number.isFinite(jitter) && jitter >= 0 && jitter <= 1, "a number from 0 to 1")
  ].flat()
  if (issues.length > 0) throw new InvalidRetryPolicy({ issues })
  return { blocking: { maxAttempts, initialIntervalMillis, multiplier, maxIntervalMillis, jitter } }
}

const issue = (setting: keyof BlockingOptions, found: unknown, isAllowed: boolean, allowed: string) =>
  isAllowed ? [] : [{ path: `blocking.${setting}`, found: show(found), allowed }]

/** NaN for what is no duration that adds up exactly. Effect reads the number NaN as zero, which would turn a mistake into retries without a wait. */
const toMillis = (input: Duration.Input): number => {
  if (Number.isNaN(input)) return Number.NaN
  const millis = Option.match(Duration.fromInput(input), { onNone: () => Number.NaN, onSome: Duration.toMillis })
  return millis <= Number.MAX_SAFE_INTEGER ? millis : Number.NaN
}

const show = (found: unknown): string =>
  typeof found === "string"
    ? JSON.stringify(found)
    : Duration.isDuration(found)
      ? Duration.format(found)
      : String(found)
