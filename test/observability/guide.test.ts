import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Metrics } from "@eventbus/core"
import { describe, expect, it } from "vitest"

const guide = readFileSync(fileURLToPath(new URL("../../docs/guide/metrics.md", import.meta.url)), "utf8")

/** Name, kind and labels of every row of the guide's tables. */
const rows = guide
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) => line.split("|").slice(1, 4))
  .map(([name, kind, labels]) => [name?.trim(), kind?.trim(), labels?.trim()])
  // Other tables of the page are about limits.
  .filter(([, kind]) => /^(counter|gauge|histogram)\b/.test(kind ?? ""))

describe("docs/guide/metrics.md", () => {
  it("OBS-16 lists every metric with its kind, unit and labels, and no other", () => {
    expect([...rows].sort()).toEqual(
      Metrics.all
        .map(({ name, kind, unit, labels }) => [
          `\`${name}\``,
          unit === undefined ? kind : `${kind}, ${unit}`,
          labels.join(", ")
        ])
        .sort()
    )
  })
})
