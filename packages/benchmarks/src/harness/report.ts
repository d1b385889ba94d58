/** Measurements as text. */
import type { Benchmark, Target } from "./Benchmark.ts"
import type { Judged } from "./rounds.ts"

export const asJsonLines = (judged: ReadonlyArray<Judged>): string =>
  judged.map(({ measurement }) => JSON.stringify(measurement)).join("\n")

export const asTable = (benchmark: Benchmark, judged: ReadonlyArray<Judged>): string => {
  const rows = judged.map(({ measurement, target, met }) => [
    measurement.case,
    formatNumber(measurement.median),
    measurement.unit,
    measurement.against === null ? "" : `${formatRatio(measurement.ratio)} x ${measurement.against}`,
    target === undefined ? "" : formatTarget(target),
    met === undefined ? "" : met ? "reached" : "MISSED"
  ])
  const table = [["case", "median", "unit", "compared", "target", ""], ...rows]
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)))
  const lines = table.map((row) =>
    row
      .map((cell, column) => (column === 1 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd()
  )
  return [`bench ${benchmark.name}`, ...benchmark.header.map((line) => `  ${line}`), "", ...lines].join("\n")
}

const formatTarget = ({ of, bound, value }: Target): string =>
  `${bound === "at least" ? ">=" : "<="} ${formatNumber(value)}${of === "ratio" ? " x" : ""}`

const formatRatio = (ratio: number | null): string => (ratio === null ? "-" : formatNumber(ratio))

const formatNumber = (value: number): string =>
  Math.abs(value) >= 1_000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)))
