/**
 * The settings of a binding as a configuration gives them: every key has its value.
 */
import { Defaults } from "@eventbus/core"
import type * as Settings from "./Settings.ts"

type Decoded = typeof Settings.Binding.Type

/** Settings of one retry tier. */
export type TierSettings = typeof Settings.Tier.Type

/** Settings of retries, with the tiers filled in. */
export interface RetrySettings extends Omit<Decoded["retry"], "tiers"> {
  /** Retry tiers in order. Empty with `orderingMode: STRICT`, unless the configuration sets them. */
  readonly tiers: ReadonlyArray<TierSettings>
}

/** Settings of the order per key, with the defaults filled in. */
export type PerKeySettings = Required<typeof Settings.PerKey.Type>

/** One binding, complete and frozen. Times are in milliseconds. */
export interface BindingSettings extends Omit<Decoded, "handler" | "maxPollRecords" | "perKey" | "retry"> {
  /** Name of the binding. */
  readonly name: string
  /** Name of the handler. Default: the binding's name. */
  readonly handler: string
  /** `max.poll.records`: the largest batch. Default 50 for SINGLE, 200 for BATCH. */
  readonly maxPollRecords: number
  /** The order per key. Absent with another `orderingMode` than PER_KEY, unless the configuration sets it, which the rules refuse. */
  readonly perKey?: PerKeySettings
  /** Retries in place and in tiers. */
  readonly retry: RetrySettings
}

/** Fills in the defaults that depend on another key. */
export const complete = (name: string, { perKey, ...decoded }: Decoded): BindingSettings => {
  const { tiers = Defaults.retry.tierDelaysMillis[decoded.orderingMode] } = decoded.retry
  return {
    ...decoded,
    ...(perKey === undefined && decoded.orderingMode !== "PER_KEY" ? {} : { perKey: perKeyOf(perKey) }),
    name,
    handler: decoded.handler ?? name,
    maxPollRecords: decoded.maxPollRecords ?? Defaults.binding.maxPollRecords[decoded.listenerType],
    retry: {
      ...decoded.retry,
      tiers: tiers.map((tier) => (typeof tier === "number" ? { delayMs: tier, ...Defaults.retry.tier } : tier))
    }
  }
}

const perKeyOf = (given: typeof Settings.PerKey.Type = {}): PerKeySettings => {
  const { holdForMillis: holdForMs, ...others } = Defaults.perKey
  return { ...others, holdForMs, ...given }
}
