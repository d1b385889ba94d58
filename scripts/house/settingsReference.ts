/**
 * The reference of all settings, one row each: name in code, key in a file, variable, default, range. It is made of the published JSON Schema, which a test of
 * `@eventbus/config` compares with the schema that reads files.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

const source = "packages/config/eventbus.schema.json"

/** A part of the JSON Schema, as far as it is read here. */
interface Described {
  readonly title?: string
  readonly description?: string
  readonly type?: string | ReadonlyArray<string>
  readonly enum?: ReadonlyArray<string>
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly anyOf?: ReadonlyArray<Described>
  readonly properties?: Readonly<Record<string, Described>>
  readonly additionalProperties?: Described | boolean
  readonly items?: Described
}

/** One key: its canonical names from the section down; a list's entry is `[0]`. */
interface Setting {
  readonly path: ReadonlyArray<string>
  readonly described: Described
}

/** The page, or undefined in a tree without `@eventbus/config`. */
export const settingsPage = (root: string): string | undefined => {
  if (!existsSync(join(root, source))) return undefined
  const document: Described = JSON.parse(readFileSync(join(root, source), "utf8"))
  const eventbus = propertiesOf(document)["eventbus"]!
  const { bindings, clusters, fleet, audit } = propertiesOf(eventbus)
  return [
    "# Settings",
    "",
    "Every setting has one row: its name in code, its key in a configuration file, its environment variable, its default and its range. `pnpm docs:reference` makes this page of the schema",
    "that reads files.",
    "",
    "- **Code** is the option of `createEventBus` and `consumer` of `@eventbus/node`. `Binding.make` and `KafkaJs.layer` have the same names; `retry`, `deadLetter` and `naming` are values",
    "  there, made by `RetryPolicy`, `DeadLetter` and `TopicName`.",
    "- **YAML** is the key below `eventbus.bindings.{name}` or `eventbus.clusters.{name}`. Camel case is accepted too, and a duration may keep its `-ms`. [Configuration](../guide/configuration.md) says",
    "  how files, profiles and variables are laid over each other.",
    "- **Variable** is what follows the prefix that the section names; `{NAME}` is the name of the binding or cluster in upper case, with `_` for each other character. Inside of a variable it is",
    "  the name of an entry that a file has.",
    "- A duration is a whole number of milliseconds or a text such as `10s`, `1m 30s` or `PT10S`.",
    "",
    ...section("Bindings", "EVENTBUS_BINDINGS_{NAME}_", entryOf(bindings!)),
    "`eventbus.defaults` takes the same keys for all bindings, as variables with the prefix `EVENTBUS_DEFAULTS_`.",
    "",
    ...section("Clusters", "EVENTBUS_CLUSTERS_{NAME}_", entryOf(clusters!)),
    ...section("Fleet", "EVENTBUS_FLEET_", fleet!),
    ...section("Audit log", "EVENTBUS_AUDIT_", audit!)
  ].join("\n")
}

const section = (title: string, prefix: string, described: Described): ReadonlyArray<string> => [
  `## ${title}`,
  "",
  `Variables begin with \`${prefix}\`.`,
  "",
  "| code | YAML | variable | default | range | meaning |",
  "|---|---|---|---|---|---|",
  ...settingsIn([], described).map(row),
  ""
]

/** The keys of a section in its canonical spelling, and those of the sections in it. */
const settingsIn = (above: ReadonlyArray<string>, described: Described): ReadonlyArray<Setting> =>
  Object.entries(propertiesOf(described))
    .filter(([spelling, { title }]) => spelling === title)
    .flatMap(([key, value]) => {
      const path = [...above, key]
      const entry = value.items ?? value.anyOf?.find(({ items }) => items !== undefined)?.items
      const below = [...settingsIn(path, value), ...(entry === undefined ? [] : settingsIn([...path, "0"], entry))]
      // A section alone has no value; one that may also be a single value has a row of its own.
      if (value.type === "object" && value.properties !== undefined) return below
      // A section of names has a value for each name.
      const own = typeof value.additionalProperties === "object" ? [...path, "{NAME}"] : path
      return [{ path: own, described: value }, ...below]
    })

const propertiesOf = (described: Described): Readonly<Record<string, Described>> =>
  [described, ...(described.anyOf ?? [])].find(({ properties }) => properties !== undefined)?.properties ?? {}

const entryOf = ({ additionalProperties }: Described): Described => additionalProperties as Described

const row = ({ path, described }: Setting): string => {
  const { meaning, fallback } = textsOf(described)
  const cells = [
    code(joined(path.map(withoutUnit))),
    code(joined(path.map(withoutUnit).map(kebab))),
    code(path.map(constant).join("_")),
    fallback,
    rangeOf(described),
    meaning
  ]
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`
}

const code = (text: string): string => `\`${text}\``
const withoutUnit = (key: string): string => key.replace(/Ms$/, "")
const kebab = (key: string): string =>
  key === "{NAME}" ? key : key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
const constant = (key: string): string => key.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toUpperCase()
const joined = (path: ReadonlyArray<string>): string => path.join(".").replace(/\.0(?=\.|$)/g, "[0]")

/** A description ends with its default and what is allowed: each has a column here. */
const textsOf = ({ description = "" }: Described) => {
  const required = description.startsWith("Required. ")
  const words = description.replace(/^Required\. /, "").replace(/ Allowed: .*$/s, "")
  const fallback = / Default:? (.+?)\.(?= |$)/.exec(` ${words}`)
  return {
    meaning: words.replace(/ ?Default:? .+?\.(?= |$)/, "").trim(),
    fallback: required ? "required" : (fallback?.[1] ?? "none")
  }
}

const duration = 'a duration such as "10s" or "10 seconds", or a whole number of ms, '

/** The allowed values, in words. */
const rangeOf = (described: Described): string => {
  const stated = / Allowed: (.*)\.$/s.exec(described.description ?? "")?.[1]
  if (stated !== undefined) return stated.replace(duration, "")
  if (described.items !== undefined) return `a list, each entry ${rangeOf(described.items)}`
  if (typeof described.additionalProperties === "object") return rangeOf(described.additionalProperties)
  if (described.properties !== undefined) return "a section"
  if (described.enum !== undefined) return described.enum.join(", ")
  const options = (described.anyOf ?? []).filter((option) => option.pattern !== "\\$\\{.+\\}")
  return options.length > 0 ? options.map(rangeOf).join("; or ") : numbersOf(described)
}

const numbersOf = ({ type, minimum, maximum }: Described): string => {
  const unit = Array.isArray(type) && type.includes("string") ? " ms" : ""
  if (minimum === undefined) return type === "string" ? "a text" : String(type)
  return maximum === undefined ? `${minimum}${unit} or more` : `${minimum}${unit} to ${maximum}${unit}`
}
