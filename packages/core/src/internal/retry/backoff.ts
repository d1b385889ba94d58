/**
 * The waits between attempts of one delivery (Tier 0): exponential, with jitter that never exceeds the cap (ruling 12).
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type { BackoffPolicy } from "../../RetryPolicy.ts"

/** The wait after failed attempt number `attempt` (from 1), in whole milliseconds. `random` is in [0, 1). Finite for every attempt. */
export const delayMillis = (policy: BackoffPolicy, attempt: number, random: number): number => {
  if (policy.initialBackoffMillis === 0) return 0
  // The power may be Infinity. The cap makes it finite before anything is multiplied with it.
  const interval = Math.min(policy.maxBackoffMillis, policy.initialBackoffMillis * policy.multiplier ** (attempt - 1))
  return Math.min(policy.maxBackoffMillis, Math.round(interval * (1 + policy.jitter * (2 * random - 1))))
}

/** The sum of all waits of one delivery when every random draw is `random`. */
export const totalMillis = (policy: BackoffPolicy, random: number): number => {
  const wait = (attempt: number) => delayMillis(policy, attempt, random)
  if (policy.multiplier === 1 || policy.initialBackoffMillis === 0) return (policy.maxAttempts - 1) * wait(1)
  // Once the cap is reached, all further waits are equal: multiply instead of adding up a possibly huge number of attempts.
  const isCapped = (attempt: number) =>
    policy.initialBackoffMillis * policy.multiplier ** (attempt - 1) >= policy.maxBackoffMillis
  let total = 0
  for (let attempt = 1; attempt < policy.maxAttempts; attempt++) {
    if (isCapped(attempt)) return total + (policy.maxAttempts - attempt) * wait(attempt)
    total += wait(attempt)
  }
  return total
}

/** The longest possible sum of all waits of one delivery, cap and jitter included. */
export const worstCaseTotalMillis = (policy: BackoffPolicy): number => totalMillis(policy, 1)

/** The same waits as a schedule for `Effect.retry`. It ends after `maxAttempts` attempts in total, and draws from the `Random` service. */
export const schedule = (policy: BackoffPolicy): Schedule.Schedule<number> =>
  Schedule.recurs(policy.maxAttempts - 1).pipe(
    Schedule.modifyDelay(({ attempt }) =>
      Effect.map(Random.next, (random) => Duration.millis(delayMillis(policy, attempt, random)))
    )
  )
