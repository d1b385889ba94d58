/** A time as text. Clocks of other processes, records and users give times that no date can hold, such as nanoseconds: those stay numbers. */

/** The last time that a date can hold, epoch milliseconds. */
export const lastMillis = 8_640_000_000_000_000

/** The time in ISO 8601, or its milliseconds where no date can hold it. Never throws. */
export const isoText = (millis: number): string =>
  Math.abs(millis) <= lastMillis ? new Date(millis).toISOString() : String(millis)
