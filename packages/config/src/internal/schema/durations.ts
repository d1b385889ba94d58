/**
 * Parses durations of a configuration: `10s`, `1m 30s`, `10 seconds`, `PT10S`.
 */

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

/** The milliseconds of a text; NaN when it is not a duration, or not a whole number of milliseconds. */
export const parse = (text: string): number => {
  const trimmed = text.trim()
  if (trimmed.length > maxLength) return Number.NaN
  const millis = /^p/i.test(trimmed) ? parseIso(trimmed) : parseParts(trimmed.toLowerCase())
  return Number.isSafeInteger(millis) ? millis : Number.NaN
}

/** The shortest text for a default: `200 ms`, `45 s`, `10 min`. */
export const format = (millis: number): string => {
  const [unit, each] = shownUnits.find(([, each]) => millis >= each && millis % each === 0) ?? ["ms", 1]
  return `${millis / each} ${unit}`
}

const shownUnits = [
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000]
] as const

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
