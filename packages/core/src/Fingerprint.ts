/**
 * Names of groups of failures, for packages that keep failures as text: errors that differ only in numbers and ids have one fingerprint.
 *
 * ```ts
 * import { Fingerprint } from "@eventbus/core"
 *
 * export const group = Fingerprint.ofSummary({ className: "Refused", message: "order 17 is closed" }, "OrderPlaced")
 * ```
 */
import { masked } from "./internal/failure/applicationFrame.ts"

export { ofSummary } from "./internal/failure/fingerprint.ts"

/** A message with `#` for numbers and ids, at most 200 characters. The rest of it may quote the data. */
export const maskedMessage = (message: string): string => masked(message.slice(0, 1_000), 1, 1, 200)
