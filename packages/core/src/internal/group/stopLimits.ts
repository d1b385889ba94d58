/**
 * Shares the time of a stop, or of giving up revoked partitions, among the steps that follow each other (rulings 35 and 83). A broker that does not answer can make each
 * step as long as its limit, and the sum stays within the whole.
 */
import type * as Clock from "effect/Clock"
import * as Clocks from "../base/clocks.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** How long each step may take from now on, in milliseconds. A step that ends early leaves its time to the next ones. */
export interface StopLimits {
  /** Running handlers end, and copies that are on their way are acknowledged. */
  readonly drain: () => number
  /** The last commit of each partition. */
  readonly commit: () => number
  /** Handlers that were interrupted clean up. */
  readonly cleanUp: () => number
  /** The sessions leave the group, and their connections close. */
  readonly leave: () => number
  /** The producer of the copies closes. */
  readonly release: () => number
}

/** Longest time of each step, whatever the whole allows. */
const longest = { commit: 5_000, cleanUp: 5_000, leave: 10_000, release: 3_000 }

/** The steps behind the drain get a fifth of the whole: 5 seconds at most, and half a second at least, also when the whole is shorter. */
const reserved = { share: 0.2, most: 5_000, least: 500 }

/** Shares of the reserve that a step leaves to the steps behind it. */
const keptBehind = { commit: 0.6, cleanUp: 0.4, leave: 0.25 }

/** The limits of a stop that begins now and takes `shutdownTimeout` as a whole. */
export const ofStop = (
  { shutdownTimeoutMillis }: Pick<BindingDefinition<unknown>, "shutdownTimeoutMillis">,
  clock: Clock.Clock
): StopLimits => {
  const elapsedMillis = Clocks.stopwatch(clock)
  const share = Math.min(reserved.most, Math.ceil(shutdownTimeoutMillis * reserved.share))
  const drainEnd = shutdownTimeoutMillis - share
  const reserve = Math.max(reserved.least, share)
  const end = drainEnd + reserve
  const until = (millis: number, most = Number.POSITIVE_INFINITY) =>
    Math.min(most, Math.max(0, Math.floor(millis) - elapsedMillis()))
  return {
    drain: () => until(drainEnd),
    commit: () => until(end - reserve * keptBehind.commit, longest.commit),
    cleanUp: () => until(end - reserve * keptBehind.cleanUp, longest.cleanUp),
    leave: () => until(end - reserve * keptBehind.leave, longest.leave),
    release: () => until(end, longest.release)
  }
}

/** Limits where no stop goes on: a session ends by itself. */
export const ofSessionEnd: Pick<StopLimits, "cleanUp"> = { cleanUp: () => longest.cleanUp }

/** For the way to the coordinator and back: the release of a partition must arrive before the group takes it away. */
const releaseMillis = 1_000

/** The drain and the commit of partitions that are revoked now end before the rebalance timeout: the group takes them away then. */
export const ofRevocation = ({
  shutdownTimeoutMillis,
  rebalanceTimeoutMillis
}: Pick<BindingDefinition<unknown>, "shutdownTimeoutMillis" | "rebalanceTimeoutMillis">): Pick<
  StopLimits,
  "drain" | "commit"
> => ({
  drain: () => Math.max(0, Math.min(shutdownTimeoutMillis, rebalanceTimeoutMillis - longest.commit - releaseMillis)),
  commit: () => longest.commit
})
