/**
 * How often, and how far apart, a failing record is tried again, and which errors are tried at all.
 *
 * A binding without `retry` has `tiered()`: attempts in place and three retry topics (connector seed §4.1, §4.6), in code as in a file. With `orderingMode: "STRICT"` it has
 * `blocking()`, because a record in a retry topic is overtaken. `blocking()` is also the way to say that a binding has no retry topics.
 */
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type { ExceptionLists } from "./Classifier.ts"
import * as Defaults from "./Defaults.ts"
import { toMillis } from "./internal/base/durations.ts"
import { isObject, read } from "./internal/base/properties.ts"
import { shown } from "./internal/base/shown.ts"
import * as PolicyKinds from "./internal/retry/policyKinds.ts"
import * as TierDelays from "./internal/retry/tierDelays.ts"
import * as RenamedSettings from "./internal/settings/renamedSettings.ts"
import * as Ranges from "./Ranges.ts"
import type { Time } from "./Time.ts"

/** Settings outside of what is allowed; all of them at once. Thrown by the functions of this module. */
export class InvalidRetryPolicy extends Schema.TaggedError<InvalidRetryPolicy>()("InvalidRetryPolicy", {
  /** Every setting that is refused. */
  issues: Schema.Array(
    Schema.Struct({
      /** The setting, such as `blocking.maxAttempts` or `tiers[1].delay`. */
      path: Schema.String,
      /** The value that was given, as text. */
      found: Schema.String,
      /** The values that are allowed. */
      allowed: Schema.String
    })
  )
}) {
  /** False: the same settings are refused again. */
  readonly retryable = false
  override get message(): string {
    return this.issues.map(({ path, found, allowed }) => `${path} is ${found}; allowed: ${allowed}`).join("\n")
  }
}

/** A policy, checked and complete. `blocking`, `tiered` and `fixedDelay` make one. */
export interface RetryPolicy extends ExceptionLists {
  /** Attempts inside one delivery (tier 0). The partition, or the key, waits meanwhile. Each delivery of a tier has them again. */
  readonly blocking: BackoffPolicy
  /** Retry topics with a delay, in the order in which a record passes through them. Empty: none. */
  readonly tiers: ReadonlyArray<Tier>
  /**
   * Longest time between the failed delivery in the main topic and the last delivery in a retry topic, in milliseconds: a record whose next delivery would be due later is
   * exhausted. Undefined: no limit beside the number of deliveries.
   */
  readonly maxElapsedMillis?: number | undefined
  /** Whether the tiers share the group and the session of the main topic, or have a group `{groupId}.retry` of their own. */
  readonly consumer: "shared" | "separate"
  /** Partitions of a retry topic that the connector creates; undefined: as many as the source has. */
  readonly partitions: number | undefined
  /** Replication factor of a retry topic that the connector creates; undefined: the source's. */
  readonly replicationFactor: number | undefined
}

/** Attempts in place and the waits between them, as finite numbers. */
export interface BackoffPolicy {
  /** Handler calls in all, 1 or more: there is one wait fewer than attempts. */
  readonly maxAttempts: number
  /** Wait after the first failure, in milliseconds. */
  readonly initialBackoffMillis: number
  /** Factor from one wait to the next, 1 or more. */
  readonly multiplier: number
  /** Longest single wait in milliseconds, jitter included. */
  readonly maxBackoffMillis: number
  /** A wait varies by up to this share of itself, either way. 0 to 1. */
  readonly jitter: number
}

/** One retry tier: a topic whose records become due when they have been there for the delay. */
export interface Tier {
  /** How long a record waits before its first delivery in the tier, in milliseconds. */
  readonly delayMillis: number
  /** How long it waits before the later deliveries, one by one, in milliseconds; the last one holds for all that follow. Absent or empty: as long as before the first. */
  readonly laterDelaysMillis?: ReadonlyArray<number> | undefined
  /** Deliveries in this tier, each after the delay, each with all attempts of `blocking`. */
  readonly maxAttempts: number
  /** The part of the topic's name behind `{topic}.`; undefined: what the naming strategy says. */
  readonly topicSuffix: string | undefined
  /** Handlers that run at once in this tier, in one process. */
  readonly concurrency: number
  /** This tier's records go to the topic of the tier before it, which has the same delay. */
  readonly sharesTopic: boolean
}

/** Settings of one tier. */
export interface TierOptions {
  /**
   * How long a record waits before each delivery in this tier, or before the first one with a `multiplier`. 0 or more, 2^53 - 1 ms at most. A `Schedule` says each wait. It
   * is walked once, when the policy is made, by a clock that only its waits move: it needs no service, and its random waits are the same for every record. Its end bounds
   * the deliveries, and so it has to end within 1000 waits where `maxAttempts` is absent.
   */
  readonly delay: Time | Schedule.Schedule<unknown>
  /** Factor from one wait to the next, for a record that fails again. 1 or more, finite. Default 1: every wait is `delay`. */
  readonly multiplier?: number
  /** Longest single wait: `delay` or more, 2^53 - 1 ms at most. Default: none beside 2^53 - 1 ms. */
  readonly maxDelay?: Time
  /** Deliveries in this tier, 1 or more; the one in the main topic does not count. Default 3, or as many as the `Schedule` has waits. */
  readonly maxAttempts?: number
  /** Name of the topic behind `{topic}.`. Default: what the binding's naming strategy says, `retry-{n}`. */
  readonly topicSuffix?: string
  /** Handlers that run at once in this tier, in one process. 1 or more. Default 1, which is gentle to a dependency that recovers. */
  readonly concurrency?: number
}

/** Settings of a policy with retry topics. */
export interface TieredOptions extends ExceptionLists {
  /** Attempts inside each delivery. Default as in `blocking()`: 3. */
  readonly blocking?: BlockingOptions
  /** The tiers, by their delay or in full. Default: 10 seconds, 1 minute, 5 minutes, three deliveries each. An empty list means no retry topics. */
  readonly tiers?: ReadonlyArray<Time | Schedule.Schedule<unknown> | TierOptions>
  /**
   * Longest time between the failed delivery in the main topic and the last delivery in a retry topic: a record whose next delivery would be due later is exhausted. 1 ms or
   * more, 2^53 - 1 ms at most. Default: no limit, only the number of deliveries counts. Whichever of both comes first ends the retries.
   */
  readonly maxElapsedTime?: Time
  /** `share`: neighbouring tiers of the same delay use one topic. Default `refuse`: delays must grow from tier to tier. */
  readonly equalDelays?: "refuse" | "share"
  /** `shared` (default): one membership, one set of connections. `separate`: a rebalance of the tiers never touches the main topic. */
  readonly consumer?: "shared" | "separate"
  /** Partitions of a retry topic that the connector creates. 1 or more. Default: as many as the source. */
  readonly partitions?: number
  /** Replication factor of a retry topic that the connector creates. 1 or more. Default: the source's. */
  readonly replicationFactor?: number
}

/** Settings of the attempts in place. */
export interface BlockingOptions {
  /** Handler calls in all, the first included. A whole number, 1 or more; 1 means no retries. Default 3. */
  readonly maxAttempts?: number
  /** Wait after the first failure. 0 or more, 2^53 - 1 ms at most. Default 100 milliseconds. */
  readonly initialBackoff?: Time
  /** Factor from one wait to the next. 1 or more, finite; 1 keeps the wait constant. Default 2. */
  readonly multiplier?: number
  /** Longest single wait, the first and jitter included. 0 or more, 2^53 - 1 ms at most. Default 2 seconds. */
  readonly maxBackoff?: Time
  /** A wait varies by up to this share of itself, either way. 0 (exact waits) to 1. Default 0.2. */
  readonly jitter?: number
}

const withoutTiers = { tiers: [], consumer: "shared", partitions: undefined, replicationFactor: undefined } as const

/** One attempt: no attempts in place and no retry topics. A failed record goes to the dead letter topic. */
export const none: RetryPolicy = {
  blocking: { maxAttempts: 1, initialBackoffMillis: 0, multiplier: 1, maxBackoffMillis: 0, jitter: 0 },
  ...withoutTiers
}

/**
 * Attempts in place only, in order, with exponential waits between them, and no retry topics. By default: 3 attempts, about 100 and 200 ms apart.
 * Throws `InvalidRetryPolicy`, which names every setting that is not allowed.
 */
export const blocking = (options: BlockingOptions & ExceptionLists = {}): RetryPolicy => {
  refuse(Ranges.problemsOfAll(options, PolicyKinds.exceptionLists))
  const { policy, issues } = readBlocking(options)
  refuse(issues)
  return { blocking: policy, ...withoutTiers, ...listsOf(options) }
}

/**
 * Attempts in place, and then retry topics with growing delays, while the main topic goes on (connector seed §4.6). By default 30 attempts over
 * about 18 minutes: 3 in place, then 3 deliveries of 3 attempts after 10 seconds, 1 minute and 5 minutes each.
 * Throws `InvalidRetryPolicy`, which names every setting that is not allowed.
 */
export const tiered = (options: TieredOptions = {}): RetryPolicy => {
  refuse(Ranges.problemsOfAll(options, PolicyKinds.tieredParts))
  const { policy, issues } = readBlocking(options.blocking ?? {})
  const { equalDelays = Defaults.retry.equalDelays, consumer = Defaults.retry.consumer } = options
  const inFull = (options.tiers ?? Defaults.retry.tierDelaysMillis.RELAXED_IN_RETRY).map(
    (tier): TierOptions => (isTierOptions(tier) ? copyOf(tier, PolicyKinds.tierNames) : { delay: tier })
  )
  const delays = inFull.map((tier, index) => TierDelays.read(tier, `tiers[${index}].`))
  const tiers = inFull.map((tier, index): Tier => {
    const { maxAttempts } = delays[index]!
    const [delayMillis, ...laterDelaysMillis] = delays[index]!.delaysMillis as [number, ...Array<number>]
    const before = delays[index - 1]?.delaysMillis
    const isFixed = laterDelaysMillis.length === 0 && before?.length === 1
    const sharesTopic = equalDelays === "share" && isFixed && before[0] === delayMillis
    const { topicSuffix, concurrency = Defaults.retry.tier.concurrency } = tier
    const later = laterDelaysMillis.length === 0 ? {} : { laterDelaysMillis }
    return { delayMillis, ...later, maxAttempts, topicSuffix, concurrency, sharesTopic }
  })
  const all = [
    ...issues,
    ...inFull.flatMap((tier, index) => [
      ...delays[index]!.issues,
      ...tierIssues(tier, tiers[index]!, tiers[index - 1], `tiers[${index}]`)
    ]),
    ...Ranges.problemsOfAll(options, PolicyKinds.tieredOptions)
  ]
  const { partitions, replicationFactor, maxElapsedTime } = options
  const maxElapsedMillis = maxElapsedTime === undefined ? undefined : toMillis(maxElapsedTime)
  const shortest = tiers[0]?.delayMillis
  const reaches = maxElapsedMillis === undefined || shortest === undefined || !(maxElapsedMillis < shortest)
  refuse([
    ...all,
    ...issue("maxElapsedTime", maxElapsedTime, reaches, `the delay of the first tier (${shortest} ms) or more`)
  ])
  const copies = { consumer, partitions, replicationFactor }
  const limit = maxElapsedMillis === undefined ? {} : { maxElapsedMillis }
  return { blocking: policy, tiers, ...limit, ...copies, ...listsOf(options) }
}

/**
 * One retry topic: `maxAttempts` deliveries (default 3), each after `delay`, or after waits that grow by `multiplier` up to `maxDelay`. Name it with `topicSuffix`, or with
 * `naming: TopicName.dashed` for `{topic}-retry`. Throws `InvalidRetryPolicy`, which names every setting that is not allowed.
 */
export const fixedDelay = (options: TierOptions & Omit<TieredOptions, "tiers" | "equalDelays">): RetryPolicy =>
  tiered({ ...copyOf(options, PolicyKinds.tieredNames), tiers: [options] })

const listsOf = ({
  retryableExceptions,
  nonRetryableExceptions,
  skipToTierMapping
}: ExceptionLists): ExceptionLists => ({
  ...(retryableExceptions && { retryableExceptions }),
  ...(nonRetryableExceptions && { nonRetryableExceptions }),
  ...(skipToTierMapping && { skipToTierMapping })
})

const readBlocking = (options: BlockingOptions) => {
  const issues = [
    ...RenamedSettings.issues(options, RenamedSettings.ofBlocking, "blocking."),
    ...Ranges.problemsOfAll(options, Ranges.retry.blocking, "blocking.")
  ]
  const {
    maxAttempts = Defaults.retry.blocking.maxAttempts,
    initialBackoff = Defaults.retry.blocking.initialBackoffMillis,
    multiplier = Defaults.retry.blocking.multiplier,
    maxBackoff = Defaults.retry.blocking.maxBackoffMillis,
    jitter = Defaults.retry.blocking.jitter
  } = issues.length > 0 ? {} : options
  const initialBackoffMillis = toMillis(initialBackoff)
  const maxBackoffMillis = toMillis(maxBackoff)
  return { policy: { maxAttempts, initialBackoffMillis, multiplier, maxBackoffMillis, jitter }, issues }
}

const isTierOptions = (tier: Time | Schedule.Schedule<unknown> | TierOptions): tier is TierOptions =>
  isObject(tier) && read(tier, "delay") !== undefined

/** Reads each setting once. */
const copyOf = <O extends object>(given: O, names: ReadonlyArray<string>): O =>
  Object.fromEntries(isObject(given) ? names.map((name) => [name, read(given, name)]) : []) as O

const tierIssues = (given: TierOptions, tier: Tier, before: Tier | undefined, path: string) => {
  const longestBefore = before?.laterDelaysMillis?.at(-1) ?? before?.delayMillis
  const grows = longestBefore === undefined || tier.sharesTopic || !(tier.delayMillis <= longestBefore)
  return [
    ...issue(
      `${path}.delay`,
      given.delay,
      grows,
      `more than the delay of the tier before it (${longestBefore} ms), or equalDelays "share" for an equal one`
    ),
    ...issue(
      `${path}.topicSuffix`,
      tier.topicSuffix,
      tier.topicSuffix === undefined || !tier.sharesTopic,
      "nothing: the tier uses the topic of the tier before it"
    ),
    ...(tier.topicSuffix === undefined ? [] : PolicyKinds.topicSuffix(`${path}.topicSuffix`, tier.topicSuffix))
  ]
}

const refuse = (issues: InvalidRetryPolicy["issues"]): void => {
  if (issues.length > 0) throw new InvalidRetryPolicy({ issues })
}

const issue = (path: string, found: unknown, isAllowed: boolean, allowed: string) =>
  isAllowed ? [] : [{ path, found: shown(found), allowed }]
