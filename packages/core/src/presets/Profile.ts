/**
 * Retry policies for the kinds of consumers of one application, an escrow service (error handling seed "Retry Policy"), as an example of presets of your own. Spread
 * one into a binding's options:
 *
 * ```ts
 * import { Binding, Serde } from "@eventbus/core"
 * import * as Profile from "@eventbus/core/presets/Profile"
 * import { Effect } from "effect"
 *
 * export const payouts = Binding.make("payouts", {
 *   ...Profile.financial,
 *   topic: "escrow.commands",
 *   groupId: "cg-payout-executor",
 *   value: Serde.string,
 *   handler: ({ value }) => Effect.log(value)
 * })
 * ```
 *
 * All of them try in place and have no retry topics. Attempts are tries in all: three retries are four attempts (ruling 67). `maxPollRecords` is as large as the
 * processing budget allows with these waits.
 */
import type { Settings } from "../BindingOptions.ts"
import * as RetryPolicy from "../RetryPolicy.ts"

type Profile = Pick<Settings<never, never>, "ackMode" | "retry" | "maxPollRecords" | "maxPollInterval">

const retries = (count: number, initialBackoff: number, maxBackoff: number) =>
  RetryPolicy.blocking({ maxAttempts: count + 1, initialBackoff, multiplier: 2, maxBackoff, jitter: 0 })

/** Most consumers: three retries after 1, 2 and 4 seconds; a wait never exceeds 30 seconds. */
export const standard = {
  ackMode: "MANUAL_IMMEDIATE",
  retry: retries(3, 1_000, 30_000),
  maxPollRecords: 50
} as const satisfies Profile

/** Consumers that move money: five retries after 5, 10, 20, 40 and 60 seconds. */
export const financial = {
  ackMode: "MANUAL_IMMEDIATE",
  retry: retries(5, 5_000, 60_000),
  maxPollRecords: 3
} as const satisfies Profile

/** Consumers that send notifications: three retries after 1, 2 and 4 seconds; a wait never exceeds 10 seconds. */
export const notification = {
  ackMode: "MANUAL_IMMEDIATE",
  retry: retries(3, 1_000, 10_000),
  maxPollRecords: 50
} as const satisfies Profile

/** No retry: a schedule triggers the same work again. */
export const reconciliation = {
  ackMode: "MANUAL_IMMEDIATE",
  retry: RetryPolicy.none,
  maxPollRecords: 50
} as const satisfies Profile
