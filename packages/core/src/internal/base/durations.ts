/**
 * Durations that users write, as milliseconds.
 */
import { Duration, Option } from "effect"

/**
 * NaN for a value that is no duration, and for one beyond 2^53 - 1 ms, which cannot be added up exactly; validation reports it. Effect reads the number NaN as zero,
 * which would turn a mistake into no wait at all.
 */
export const toMillis = (input: Duration.Input): number => {
  if (Number.isNaN(input)) return Number.NaN
  const millis = Option.match(Duration.fromInput(input), { onNone: () => Number.NaN, onSome: Duration.toMillis })
  return millis <= Number.MAX_SAFE_INTEGER ? millis : Number.NaN
}
