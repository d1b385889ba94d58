/**
 * The waits of a retry tier as numbers, one for each delivery: a fixed delay, one that grows by a factor, or those of a `Schedule`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as Defaults from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as Ranges from "../../Ranges.ts"
import { toMillis } from "../base/durations.ts"
import { shown } from "../base/shown.ts"

/** The settings of a tier that say how long a record waits, as `RetryPolicy.TierOptions` has them. */
interface GivenDelays {
  readonly delay: unknown
  readonly multiplier?: number
  readonly maxDelay?: unknown
  readonly maxAttempts?: number
}

/** The waits of one tier. With issues, the numbers mean nothing. */
export interface TierDelays {
  /** The wait before each delivery, in milliseconds; the last one holds for all that follow. Never empty. */
  readonly delaysMillis: ReadonlyArray<number>
  /** Deliveries in the tier. */
  readonly maxAttempts: number
  readonly issues: ReadonlyArray<ConfigurationIssue>
}

/** A policy lists this many waits. A wait that changes more often is a mistake in its numbers. */
const mostDelays = 1_000

/** The wait before delivery number `attempt` (from 1) of a tier or its topic, in milliseconds. */
export const delayMillis = (delaysMillis: ReadonlyArray<number>, attempt: number): number =>
  delaysMillis[Math.min(attempt, delaysMillis.length) - 1]!

/** Reads the waits of a tier. `path` stands before each name. Never throws. */
export const read = (given: GivenDelays, path: string): TierDelays =>
  isSchedule(given.delay) ? ofSchedule(given.delay, given, path) : ofNumbers(given, path)

/** Total: an object may throw when it is looked at. */
const isSchedule = (delay: unknown): delay is Schedule.Schedule<unknown, never, unknown, unknown> => {
  try {
    return Schedule.isSchedule(delay)
  } catch {
    return false
  }
}

const ofNumbers = (given: GivenDelays, path: string): TierDelays => {
  const { tier } = Defaults.retry
  const { delay, multiplier = tier.multiplier, maxDelay, maxAttempts = tier.maxAttempts } = given
  const first = toMillis(delay)
  const issues = Ranges.problemsOfAll({ ...given, delay: delay ?? null }, Ranges.retry.tier, path)
  const longest = maxDelay === undefined ? Number.MAX_SAFE_INTEGER : toMillis(maxDelay)
  if (issues.length > 0) return { delaysMillis: [first], maxAttempts, issues }
  if (longest < first) {
    return { delaysMillis: [first], maxAttempts, issues: [issueOf(`${path}maxDelay`, maxDelay, `${first} ms or more`)] }
  }
  const delaysMillis = [first]
  while (delaysMillis.length < maxAttempts && delaysMillis.at(-1)! < longest && growsFrom(first, multiplier)) {
    if (delaysMillis.length === mostDelays) {
      const allowed = `a factor with which the wait reaches maxDelay within ${mostDelays} deliveries`
      return { delaysMillis, maxAttempts, issues: [issueOf(`${path}multiplier`, multiplier, allowed)] }
    }
    delaysMillis.push(Math.min(longest, Math.round(first * multiplier ** delaysMillis.length)))
  }
  return { delaysMillis, maxAttempts, issues: [] }
}

const growsFrom = (first: number, multiplier: number): boolean => first > 0 && multiplier > 1

const ofSchedule = (
  schedule: Schedule.Schedule<unknown, never, unknown, unknown>,
  given: GivenDelays,
  path: string
): TierDelays => {
  const { maxAttempts } = given
  const { delay: _, ...numbers } = Ranges.retry.tier
  const issues = [
    ...Ranges.problemsOfAll(given, numbers, path),
    ...(["multiplier", "maxDelay"] as const)
      .filter((name) => given[name] !== undefined)
      .map((name) => issueOf(path + name, given[name], "nothing beside a Schedule, which says each wait"))
  ]
  if (issues.length > 0) return { delaysMillis: [0], maxAttempts: 1, issues }
  const walked = Effect.runSyncExit(walk(schedule, maxAttempts ?? mostDelays + 1) as Effect.Effect<Array<number>>)
  const refuse = (allowed: string) => ({
    delaysMillis: [0],
    maxAttempts: 1,
    issues: [issueOf(`${path}delay`, "a Schedule", allowed)]
  })
  if (Exit.isFailure(walked)) return refuse("a Schedule that needs no service, waits for nothing and does not fail")
  const delaysMillis = walked.value
  if (delaysMillis.length === 0) return refuse("a Schedule with one wait or more")
  if (!delaysMillis.every((millis) => Ranges.contains(Ranges.retry.tier.delay, millis))) {
    return refuse(`a Schedule whose waits are ${Ranges.inWords(Ranges.retry.tier.delay)}`)
  }
  if (delaysMillis.length > mostDelays) {
    return refuse(`a Schedule that ends within ${mostDelays} waits, or maxAttempts of at most ${mostDelays}`)
  }
  return { delaysMillis: withoutRepeats(delaysMillis), maxAttempts: delaysMillis.length, issues: [] }
}

/** The first waits of a schedule, in whole milliseconds. Its clock moves by the waits alone, so that a limit of time in it counts those. */
const walk = Effect.fnUntraced(function* (schedule: Schedule.Schedule<unknown, never, unknown, unknown>, most: number) {
  const step = yield* Schedule.toStep(schedule)
  const delaysMillis: Array<number> = []
  let nowMillis = 0
  while (delaysMillis.length < Math.min(most, mostDelays + 1)) {
    const millis = yield* Pull.matchEffect(step(nowMillis, undefined as never), {
      onSuccess: ([, delay]) => Effect.succeed<number | undefined>(Math.round(Duration.toMillis(delay))),
      onFailure: Effect.failCause,
      onDone: () => Effect.succeed(undefined)
    })
    if (millis === undefined) break
    delaysMillis.push(millis)
    nowMillis += millis
  }
  return delaysMillis
})

/** Equal waits at the end are said once: a tier whose waits are all equal has a fixed delay. */
const withoutRepeats = (delaysMillis: ReadonlyArray<number>): ReadonlyArray<number> => {
  let length = delaysMillis.length
  while (length > 1 && delaysMillis[length - 1] === delaysMillis[length - 2]) length--
  return delaysMillis.slice(0, length)
}

const issueOf = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: shown(found),
  allowed
})
