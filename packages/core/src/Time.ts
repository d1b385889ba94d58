/** Durations as a program writes them. */
import type * as Duration from "effect/Duration"

type Unit = "ms" | "s" | "m" | "min" | "h" | "d" | "w"

/**
 * A duration: `"5 minutes"`, `"5m"` as in a configuration file, `"1m 30s"`, a number of milliseconds, or a `Duration` of Effect. A setting that takes one says its range and
 * its default.
 */
export type Time = Duration.Input | `${number}${Unit}` | `${number}h ${number}m` | `${number}m ${number}s`

const unitMillis = new Map(
  [
    { names: ["ms", "milli", "millis", "millisecond", "milliseconds"], millis: 1 },
    { names: ["s", "sec", "secs", "second", "seconds"], millis: 1_000 },
    { names: ["m", "min", "mins", "minute", "minutes"], millis: 60_000 },
    { names: ["h", "hr", "hrs", "hour", "hours"], millis: 3_600_000 },
    { names: ["d", "day", "days"], millis: 86_400_000 },
    { names: ["w", "week", "weeks"], millis: 604_800_000 }
  ].flatMap(({ names, millis }) => names.map((name) => [name, millis] as const))
)

/** A number with its unit, in words or short. */
const part = /(\d+(?:\.\d+)?)\s*([a-z]+)\s*/gy
const iso =
  /^P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/i
const isoMillis = [604_800_000, 86_400_000, 3_600_000, 60_000, 1_000]

/** Longest text. No duration needs more, and it keeps the regular expressions quick. */
const maxLength = 64

/** The milliseconds of a text such as `10s`, `1m 30s`, `10 seconds` or `PT10S`. NaN when it is no duration, or no whole number of milliseconds. */
export const parse = (text: string): number => {
  const trimmed = text.trim()
  if (trimmed.length > maxLength) return Number.NaN
  const millis = /^p/i.test(trimmed) ? parseIso(trimmed) : parseParts(trimmed.toLowerCase())
  return Number.isSafeInteger(millis) ? millis : Number.NaN
}

const parseIso = (text: string): number => {
  const amounts = iso.exec(text)?.slice(1)
  if (amounts === undefined || amounts.every((amount) => amount === undefined)) return Number.NaN
  return sum(amounts.map((amount, index) => Number(amount ?? 0) * isoMillis[index]!))
}

/** Each unit may occur once, from large to small. */
const parseParts = (text: string): number => {
  const parts = Array.from(text.matchAll(part))
  if (parts.length === 0 || parts.reduce((length, [whole]) => length + whole.length, 0) !== text.length) {
    return Number.NaN
  }
  const units = parts.map(([, , unit]) => unitMillis.get(unit!) ?? Number.NaN)
  if (units.some((unit, index) => Number.isNaN(unit) || unit >= (units[index - 1] ?? Infinity))) return Number.NaN
  return sum(parts.map(([, amount], index) => Number(amount) * units[index]!))
}

/** Rounds away the error of decimals such as 1.1 s, which is below a thousandth of a millisecond. */
const sum = (millis: ReadonlyArray<number>): number => {
  const total = millis.reduce((left, right) => left + right, 0)
  const rounded = Math.round(total)
  return Math.abs(total - rounded) < 1e-6 ? rounded : Number.NaN
}
