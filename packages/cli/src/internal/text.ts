/**
 * Text for a terminal, and for programs.
 */

/** Rows as lines with aligned columns. */
export const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const count = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: count }, (_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .filter((_, column) => widths[column] !== 0)
      .join("  ")
      .trimEnd()
  )
}

export const indent = (depth: number, line: string): string => `${"  ".repeat(depth)}${line}`

/** `1 topic`, `2 topics`, with a space between thousands. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en-US").replaceAll(",", " ")} ${count === 1 ? one : many}`

/** A value as JSON. Offsets become text, so that they stay exact, and maps become objects. */
export const jsonText = (value: unknown): string =>
  JSON.stringify(
    value,
    (_, each: unknown) =>
      typeof each === "bigint" ? String(each) : each instanceof Map ? Object.fromEntries(each) : each,
    2
  )
