/**
 * The settings of `orderingMode: "PER_KEY"`: their kinds, and their values with defaults applied.
 */
import type { PerKey } from "../../BindingOptions.ts"
import * as Choices from "../../Choices.ts"
import * as Defaults from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import { toMillis } from "../base/durations.ts"
import { read } from "../base/properties.ts"
import { shown } from "../base/shown.ts"

/** `PerKey`, complete. Durations in milliseconds. */
export interface PlainPerKey {
  readonly onDeadLetter: "continue" | "hold"
  readonly holdForMillis: number
  readonly maxParkedKeys: number
  readonly maxParkedBytes: number
}

/** `BindingOptions.PerKey`. */
export const kind = Kinds.struct({ onDeadLetter: Kinds.oneOf(Choices.perKey.onDeadLetter), ...Ranges.perKey })

/** The settings with defaults, whatever the `orderingMode` is. */
export const plain = ({ onDeadLetter, holdFor, maxParkedKeys, maxParkedBytes }: PerKey = {}): PlainPerKey => ({
  onDeadLetter: onDeadLetter ?? Defaults.perKey.onDeadLetter,
  holdForMillis: holdFor === undefined ? Defaults.perKey.holdForMillis : toMillis(holdFor),
  maxParkedKeys: maxParkedKeys ?? Defaults.perKey.maxParkedKeys,
  maxParkedBytes: maxParkedBytes ?? Defaults.perKey.maxParkedBytes
})

/** Options that have `perKey` beside another `orderingMode`, with which it would do nothing. */
export const withoutEffect = (options: object): ReadonlyArray<ConfigurationIssue> => {
  const { orderingMode: byDefault } = Defaults.binding
  const orderingMode = read(options, "orderingMode") ?? byDefault
  if (orderingMode === "PER_KEY" || read(options, "perKey") === undefined) return []
  const allowed = 'nothing, or orderingMode "PER_KEY" beside it: with another orderingMode it has no effect'
  return [{ path: "perKey", found: `given with orderingMode ${shown(orderingMode)}`, allowed }]
}
