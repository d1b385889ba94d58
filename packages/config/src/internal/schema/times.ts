/** Points in time as people write them. */
import { Time } from "@eventbus/core"

/** The epoch milliseconds of a time as a request or a command line has it: ISO-8601 with `Z` or an offset, a date in UTC, or epoch milliseconds; NaN for any other text. */
export const parse = (text: string): number => {
  if (/^-?\d{1,15}$/.test(text)) return Number(text)
  // A plus sign that a query does not encode arrives as a space.
  const iso = text.replace(/ (?=\d\d:\d\d$)/, "+")
  const [, day] =
    /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[-+]\d\d:\d\d)$/.exec(iso) ??
    /^(\d{4}-\d\d-\d\d)$/.exec(iso) ??
    []
  // JavaScript takes the 30th of February as the 2nd of March.
  const midnight = day === undefined ? Number.NaN : Date.parse(`${day}T00:00:00Z`)
  return Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day!) ? Number.NaN : Date.parse(iso)
}

/** A time as `parseTime` reads it, or the time that lies a duration such as `24h` back; NaN for a text that is neither. */
export const parsePast = (text: string, nowMillis: number): number => {
  const time = parse(text)
  return Number.isNaN(time) ? nowMillis - Time.parse(text) : time
}

/** A smaller number of milliseconds is one without its unit, such as 7 for 7 days. */
const firstMillis = Date.UTC(2000, 0)
/** The time may come from the clock of another machine. */
const clocksDifferMillis = 60_000

/** The time before which something is deleted: a duration ago, or a time. NaN for any other text, a time in the future, and milliseconds before 2000 (a forgotten unit). */
export const parseCutoff = (text: string, nowMillis: number): number => {
  const time = parsePast(text, nowMillis)
  const isWithoutUnit = /^-?\d+$/.test(text) && time < firstMillis
  return isWithoutUnit || time > nowMillis + clocksDifferMillis ? Number.NaN : time
}
