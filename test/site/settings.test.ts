/** The table of settings: each key of a file has one row, and its variable and its key in YAML are those that the loader reads. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Configuration, DefaultsFile } from "@eventbus/config"
import { Effect } from "effect"

interface Row {
  readonly yaml: string
  readonly variable: string
}

const page = readFileSync(new URL("../../docs/reference/settings.md", import.meta.url), "utf8")

/** The rows of a section. */
const rowsOf = (title: string): ReadonlyArray<Row> =>
  page
    .slice(page.indexOf(`\n## ${title}\n`))
    .split(/\n## /)[1]!
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => {
      const [, yaml, variable] = line
        .split("|")
        .slice(1)
        .map((cell) => cell.trim().replaceAll("`", ""))
      return { yaml: yaml!, variable: variable! }
    })

/** The keys of the published file of defaults, as paths. */
const publishedKeys = (): ReadonlyArray<string> => {
  const path: Array<string> = []
  return DefaultsFile.text.split("\n").flatMap((line) => {
    const [, indent, name, value] = /^( *)(?:# )?([a-z-]+):(.*)$/.exec(line) ?? []
    if (indent === undefined || indent.length < 4) return []
    path.length = (indent.length - 4) / 2
    path.push(name!)
    return value === "" && line.trim().startsWith("#") === false ? [] : [path.join(".")]
  })
}

describe("the table of settings", () => {
  it("RCH-12 has a row for each key that has a default", () => {
    const rows = new Set(rowsOf("Bindings").map(({ yaml }) => yaml))
    const missing = publishedKeys().filter((key) => ![rows.has(key), rows.has(key.replace(/-ms$/, ""))].includes(true))
    // A section that is not set has rows for its keys, and none for itself.
    assert.deepStrictEqual(
      missing.filter((key) => ![...rows].some((row) => row.startsWith(`${key}.`))),
      []
    )
    assert.isAbove(rows.size, 60)
  })

  it.effect("RCH-12 every variable of the table stands for a key", () =>
    Effect.gen(function* () {
      const variables = [
        ...rowsOf("Bindings").map(({ variable }) => `EVENTBUS_BINDINGS_ORDERS_${variable}`),
        ...rowsOf("Clusters").map(({ variable }) => `EVENTBUS_CLUSTERS_DEFAULT_${variable}`),
        ...rowsOf("Fleet").map(({ variable }) => `EVENTBUS_FLEET_${variable}`),
        ...rowsOf("Audit log").map(({ variable }) => `EVENTBUS_AUDIT_${variable}`)
      ]
      for (const variable of variables) {
        const text =
          "eventbus:\n  bindings:\n    orders: { topic: orders, group-id: billing, retry: { skip-to-tier-mapping: { Timeout: 1 } } }"
        const error = yield* Effect.flip(
          Configuration.parse(text, {
            env: { [variable.replace("{NAME}", "TIMEOUT")]: "\u0000", EVENTBUS_BINDINGS_ORDERS_CONCURRENCY: "0" }
          })
        )
        assert.notInclude(error.message, "stands for no key", variable)
      }
      assert.isAbove(variables.length, 90)
    })
  )
})
