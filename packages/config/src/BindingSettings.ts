/**
 * A binding as a configuration describes it: every key has its value.
 */
import type * as Settings from "./Settings.ts"

type Decoded = typeof Settings.Binding.Type

export type TierSettings = typeof Settings.Tier.Type

export interface RetrySettings extends Omit<Decoded["retry"], "tiers"> {
  /** Empty with `orderingMode: STRICT`, unless the configuration says otherwise. */
  readonly tiers: ReadonlyArray<TierSettings>
}

/** One binding, complete and frozen. Times in milliseconds. */
export interface BindingSettings extends Omit<Decoded, "handler" | "maxPollRecords" | "retry"> {
  readonly name: string
  /** The handler's name; the binding's own when the configuration names none. */
  readonly handler: string
  readonly maxPollRecords: number
  readonly retry: RetrySettings
}

const tier = (delayMs: number): TierSettings => ({ delayMs, maxAttempts: 3, concurrency: 1 })

const defaultTiers: ReadonlyArray<TierSettings> = [10_000, 60_000, 300_000].map(tier)

/** What depends on more than one key. */
export const complete = (name: string, decoded: Decoded): BindingSettings => {
  const { tiers = decoded.orderingMode === "STRICT" ? [] : defaultTiers } = decoded.retry
  return {
    ...decoded,
    name,
    handler: decoded.handler ?? name,
    maxPollRecords: decoded.maxPollRecords ?? (decoded.listenerType === "BATCH" ? 200 : 50),
    retry: { ...decoded.retry, tiers: tiers.map((each) => (typeof each === "number" ? tier(each) : each)) }
  }
}
