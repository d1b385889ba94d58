/**
 * How often, and how far apart, a failing record is tried again.
 */
import { Duration, Option, Schema } from "effect"
import type { BackoffPolicy } from "./internal/retry/backoff.ts"

/** Settings outside of what is allowed; all of them at once. */
export class InvalidRetryPolicy extends Schema.TaggedError<InvalidRetryPolicy>()("InvalidRetryPolicy", {
  issues: Schema.Array(
    Schema.Struct({
      /** The setting, such as `blocking.maxAttempts` or `tiers[1].delay`. */
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
  /** Tier 0: attempts inside one delivery. The partition (or key) waits meanwhile. Each delivery of a tier has them again. */
  readonly blocking: BackoffPolicy
  /** Retry topics with a delay, in the order in which a record passes through them. Empty: none. */
  readonly tiers: ReadonlyArray<Tier>
  /** Whether the tiers share the group and the session of the main topic, or have a group `{groupId}.retry` of their own. */
  readonly consumer: "shared" | "separate"
  /** Partitions of a retry topic that is made; undefined: as many as the source has. */
  readonly partitions: number | undefined
  /** Replication factor of a topic that is made; undefined: the source's. */
  readonly replicationFactor: number | undefined
}

/** One retry tier: a topic whose records become due when they have been there for the delay. */
export interface Tier {
  readonly delayMillis: number
  /** Deliveries in this tier, each after the delay, each with all attempts of `blocking`. */
  readonly maxAttempts: number
  /** What stands behind `{topic}.` in the topic's name; undefined: what the naming strategy says. */
  readonly topicSuffix: string | undefined
  /** Handlers that run at once in this tier. */
  readonly concurrency: number
  /** This tier's records go to the topic of the tier before it, which has the same delay. */
  readonly sharesTopic: boolean
}

export interface TierOptions {
  /** How long a record waits before each delivery in this tier. Zero or more, 2^53 - 1 ms at most. */
  readonly delay: Duration.Input
  /** Deliveries in this tier, 1 or more. Default 3. */
  readonly maxAttempts?: number
  /** Name of the topic behind `{topic}.`. Default: what the binding's naming strategy says, `retry-{n}`. */
  readonly topicSuffix?: string
  /** Handlers that run at once in this tier, in one process. 1 or more. Default 1: what recovers is not to be hit hard. */
  readonly concurrency?: number
}

export interface TieredOptions {
  /** Attempts inside each delivery. Default as `blocking()`: 3. */
  readonly blocking?: BlockingOptions
  /** The tiers, by their delay or in full. Default: 10 seconds, 1 minute, 5 minutes, three deliveries each. */
  readonly tiers?: ReadonlyArray<Duration.Input | TierOptions>
  /** `share`: neighbouring tiers of the same delay use one topic. Default `refuse`: delays must grow from tier to tier. */
  readonly equalDelays?: "refuse" | "share"
  /** `shared` (default): one membership, one set of connections. `separate`: a rebalance of the tiers never touches the main topic. */
  readonly consumer?: "shared" | "separate"
  /** Partitions of a retry topic that is made. 1 or more. Default: as many as the source. */
  readonly partitions?: number
  /** Replication factor of a retry topic that is made. 1 or more. Default: the source's. */
  readonly replicationFactor?: number
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

const withoutTiers = { tiers: [], consumer: "shared", partitions: undefined, replicationFactor: undefined } as const

/** One attempt, no retries. */
export const none: RetryPolicy = {
  blocking: { maxAttempts: 1, initialIntervalMillis: 0, multiplier: 1, maxIntervalMillis: 0, jitter: 0 },
  ...withoutTiers
}

/**
 * Retries in place, in order, with exponential waits between the attempts. By default: 3 attempts, about 100 and 200 ms apart.
 * Throws `InvalidRetryPolicy`, naming every setting that is not allowed.
 */
export const blocking = (options: BlockingOptions = {}): RetryPolicy => {
  const { policy, issues } = readBlocking(options)
  if (issues.length > 0) throw new InvalidRetryPolicy({ issues })
  return { blocking: policy, ...withoutTiers }
}

/**
 * Retries in place, and then through retry topics with growing delays, while the main topic goes on (connector seed §4.6). By default 30 attempts over
 * about 18 minutes: 3 in place, then 3 deliveries of 3 attempts after 10 seconds, 1 minute and 5 minutes each.
 * Throws `InvalidRetryPolicy`, naming every setting that is not allowed.
 */
export const tiered = (options: TieredOptions = {}): RetryPolicy => {
  const { policy, issues } = readBlocking(options.blocking ?? {})
  const inFull = (options.tiers ?? ["10 seconds", "1 minute", "5 minutes"]).map(
    (tier): TierOptions => (isTierOptions(tier) ? tier : { delay: tier })
  )
  const tiers = inFull.map((tier, index): Tier => {
    const delayMillis = toMillis(tier.delay)
    const before = inFull[index - 1]
    const sharesTopic =
      options.equalDelays === "share" && before !== undefined && toMillis(before.delay) === delayMillis
    const { maxAttempts = 3, topicSuffix, concurrency = 1 } = tier
    return { delayMillis, maxAttempts, topicSuffix, concurrency, sharesTopic }
  })
  const all = [
    ...issues,
    ...inFull.flatMap((tier, index) => tierIssues(tier, tiers[index]!, tiers[index - 1], `tiers[${index}]`)),
    ...optionalCount("partitions", options.partitions),
    ...optionalCount("replicationFactor", options.replicationFactor)
  ]
  if (all.length > 0) throw new InvalidRetryPolicy({ issues: all })
  return {
    blocking: policy,
    tiers,
    consumer: options.consumer ?? "shared",
    partitions: options.partitions,
    replicationFactor: options.replicationFactor
  }
}

/**
 * One retry topic with a fixed delay: `maxAttempts` deliveries (default 3), each after `delay`. Name it with `topicSuffix`, or with
 * `naming: TopicName.dashed` for `{topic}-retry`.
 */
export const fixedDelay = (options: TierOptions & Omit<TieredOptions, "tiers" | "equalDelays">): RetryPolicy =>
  tiered({ ...options, tiers: [options] })

const readBlocking = (options: BlockingOptions) => {
  const {
    maxAttempts = 3,
    initialInterval = "100 millis",
    multiplier = 2,
    maxInterval = "2 seconds",
    jitter = 0.2
  } = options
  const initialIntervalMillis = toMillis(initialInterval)
  const maxIntervalMillis = toMillis(maxInterval)
  const issues = [
    ...count("blocking.maxAttempts", maxAttempts),
    ...issue("blocking.initialInterval", initialInterval, initialIntervalMillis >= 0, interval),
    ...issue(
      "blocking.multiplier",
      multiplier,
      Number.isFinite(multiplier) && multiplier >= 1,
      "a finite number, 1 or more"
    ),
    ...issue("blocking.maxInterval", maxInterval, maxIntervalMillis >= 0, interval),
    ...issue("blocking.jitter", jitter, Number.isFinite(jitter) && jitter >= 0 && jitter <= 1, "a number from 0 to 1")
  ]
  return { policy: { maxAttempts, initialIntervalMillis, multiplier, maxIntervalMillis, jitter }, issues }
}

const isTierOptions = (tier: Duration.Input | TierOptions): tier is TierOptions =>
  typeof tier === "object" && tier !== null && "delay" in tier

const tierIssues = (given: TierOptions, tier: Tier, before: Tier | undefined, path: string) => {
  const grows = before === undefined || tier.sharesTopic || !(tier.delayMillis <= before.delayMillis)
  return [
    ...issue(`${path}.delay`, given.delay, tier.delayMillis >= 0, interval),
    ...issue(
      `${path}.delay`,
      given.delay,
      grows,
      `more than the delay of the tier before it (${before?.delayMillis} ms), or equalDelays "share" for an equal one`
    ),
    ...count(`${path}.maxAttempts`, tier.maxAttempts),
    ...count(`${path}.concurrency`, tier.concurrency),
    ...issue(
      `${path}.topicSuffix`,
      tier.topicSuffix,
      tier.topicSuffix === undefined || !tier.sharesTopic,
      "nothing: the tier uses the topic of the tier before it"
    )
  ]
}

const interval = "a duration of 0 or more, 2^53 - 1 ms at most"

const count = (path: string, found: number) =>
  issue(path, found, Number.isSafeInteger(found) && found >= 1, "a whole number, 1 or more")

const optionalCount = (path: string, found: number | undefined) => (found === undefined ? [] : count(path, found))

const issue = (path: string, found: unknown, isAllowed: boolean, allowed: string) =>
  isAllowed ? [] : [{ path, found: show(found), allowed }]

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
