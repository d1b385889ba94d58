/** Durations as the options of a bus have them, in milliseconds. */
import { Settings } from "@eventbus/config"
import type { DurationValue } from "../PlainValues.ts"

/** NaN for a text that is no duration, which core then refuses. */
export const millisOf = (duration: DurationValue): number =>
  typeof duration === "string" ? Settings.parseDuration(duration) : duration
