/** Writes durations for people. */

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
