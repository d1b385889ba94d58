/**
 * Settings that belong together, for kinds of consumers (the error handling strategy's retry policies). Spread one into a binding's options.
 *
 * ```ts
 * Binding.make("payouts", { ...Profile.financial, topic: "escrow.commands", groupId: "cg-payout-executor", ... })
 * ```
 *
 * Attempts are tries in all: three retries are four attempts (ruling 67). `maxPollRecords` is what fits the processing budget with these waits.
 */
import type { Settings } from "./BindingOptions.ts"
import * as RetryPolicy from "./RetryPolicy.ts"

type Profile = Pick<Settings<never, never>, "ackMode" | "retry" | "maxPollRecords" | "maxPollInterval">

const retries = (count: number, initialInterval: number, maxInterval: number) =>
  RetryPolicy.blocking({
    maxAttempts: count + 1,
    initialBackoff: initialInterval,
    multiplier: 2,
    maxBackoff: maxInterval,
    jitter: 0
  })

/** Three retries after 1, 2 and 4 seconds; a wait never exceeds 30 seconds. */
export const standard = {
  ackMode: "MANUAL_IMMEDIATE",
  retry: retries(3, 1_000, 30_000),
  maxPollRecords: 50
} as const satisfies Profile

/** Money: five retries after 5, 10, 20, 40 and 60 seconds. */
export const financial = {
  ackMode: "MANUAL_IMMEDIATE",
  retry: retries(5, 5_000, 60_000),
  maxPollRecords: 3
} as const satisfies Profile

/** Three retries after 1, 2 and 4 seconds; a wait never exceeds 10 seconds. */
export const notification = {
  ackMode: "MANUAL_IMMEDIATE",
  retry: retries(3, 1_000, 10_000),
  maxPollRecords: 50
} as const satisfies Profile

/** No retry: what is missed comes again by schedule. */
export const reconciliation = {
  ackMode: "MANUAL_IMMEDIATE",
  retry: RetryPolicy.none,
  maxPollRecords: 50
} as const satisfies Profile
