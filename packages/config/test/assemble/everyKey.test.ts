import { assert, describe, it } from "@effect/vitest"
import { Configuration, Settings } from "@eventbus/config"
import { Effect, Result } from "effect"
import * as FastCheck from "fast-check"
import * as Shape from "../../src/internal/schema/shape.ts"
import * as Names from "../../src/internal/tree/names.ts"
import * as Node from "../../src/internal/tree/node.ts"

/** A value as text, in YAML's flow style, which JSON is: so that keys can be written twice. */
type Written =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "List"; readonly items: ReadonlyArray<Written> }
  | { readonly _tag: "Section"; readonly entries: ReadonlyArray<readonly [string, Written]> }

const text = (value: unknown): Written => ({ _tag: "Text", text: JSON.stringify(value) })

const render = (written: Written): string => {
  switch (written._tag) {
    case "Text":
      return written.text
    case "List":
      return `[${written.items.map(render).join(", ")}]`
    case "Section":
      return `{${written.entries.map(([key, value]) => `${JSON.stringify(key)}: ${render(value)}`).join(", ")}}`
  }
}

const valid = ({ info, texts, takesNumber, takesBoolean }: Shape.Leaf): unknown => {
  if (texts !== undefined) return texts[0]
  if (takesNumber) return info.fallback ?? (info.allowed.startsWith("a duration") ? 3_600_000 : 1)
  return takesBoolean ? true : (info.fallback ?? (info.allowed.startsWith("host:port") ? "a:1" : "a-name"))
}

/** Keys of the other mechanism, of files, and those that only a file has: tests of their own look at them. */
const elsewhere = new Set(["include", "tokenEndpoint", "clientSecret", "scope", "credentialsIn"])
const isElsewhere = (key: string, path: Node.Path): boolean =>
  elsewhere.has(key) || key.endsWith("File") || (key === "clientId" && path.at(-1) === "sasl")

/** Every key that the shape has, each with a value that is allowed. Keys that stand for one another are not both there. */
const full = (shape: Shape.Shape, path: Node.Path = []): Written => {
  switch (shape._tag) {
    case "Leaf":
      return text(valid(shape))
    case "Struct":
      return {
        _tag: "Section",
        entries: Array.from(shape.keys)
          .filter(([key]) => !isElsewhere(key, path))
          .map(([key, { shape: inner }]) => [key, full(inner, [...path, key])])
      }
    case "Dictionary":
      return { _tag: "Section", entries: [["default", full(shape.value, [...path, "default"])]] }
    case "List":
      return { _tag: "List", items: [full(shape.item, path)] }
    case "Either":
      // The section, where there is one: it has the most keys.
      return full(shape.options.find(({ _tag }) => _tag === "Struct") ?? shape.options.at(-1)!, path)
  }
}

const root = full(Shape.make(Settings.Root.ast))

interface Setting {
  readonly path: Node.Path
  readonly leaf: Shape.Leaf | undefined
  readonly isNamed: boolean
}

/** Every key of every section, with its path. */
const settings = (shape: Shape.Shape, path: Node.Path): ReadonlyArray<Setting> => {
  const all = shape._tag === "Either" ? shape.options : [shape]
  return all.flatMap((each): ReadonlyArray<Setting> => {
    if (each._tag === "List") return settings(each.item, [...path, 0])
    if (each._tag === "Dictionary") return settings(each.value, [...path, "default"])
    if (each._tag !== "Struct") return []
    return Array.from(each.keys)
      .filter(([key]) => !isElsewhere(key, path))
      .flatMap(([key, { shape: inner }]) => {
        const here = [...path, key]
        return [{ path: here, leaf: Shape.select(inner, "Leaf"), isNamed: true }, ...settings(inner, here)]
      })
  })
}

const all = settings(Shape.make(Settings.Root.ast), [])

/** The tree with the entries of a key replaced. */
const change = (
  written: Written,
  [key, ...rest]: Node.Path,
  change_: (key: string, value: Written) => ReadonlyArray<readonly [string, Written]>
): Written => {
  if (written._tag === "List") {
    return { ...written, items: written.items.map((item) => change(item, rest, change_)) }
  }
  if (written._tag !== "Section") throw new Error("There is no such key")
  return {
    ...written,
    entries: written.entries.flatMap(([name, value]) => {
      if (name !== key) return [[name, value]]
      return rest.length === 0 ? change_(name, value) : [[name, change(value, rest, change_)]]
    })
  }
}

/** The mistakes that are told; none when the tree is taken. */
const issuesOf = (written: Written) =>
  Effect.map(Effect.result(Configuration.parse(render(written), { file: "app.yaml" })), (result) => {
    const issues = Result.isFailure(result) ? result.failure.issues : []
    return {
      message: Result.isFailure(result) ? result.failure.message : "",
      paths: issues.map(({ path }) => path),
      at: (path: string) => issues.find((issue) => issue.path === path)?.at
    }
  })

/** The mutated tree is refused with a message that contains the path, and the place. */
const isRefused = Effect.fnUntraced(function* (written: Written, path: Node.Path, what: string) {
  const { message, paths, at } = yield* issuesOf(written)
  const expected = Node.formatPath(path)
  assert.include(paths, expected, what)
  assert.include(message, expected, what)
  assert.isNumber(at(expected)?.line, what)
})

const wrong = ({ leaf }: Setting): ReadonlyArray<string> => {
  if (leaf === undefined) return ["7", "true", '"text"', "null"]
  const { minimum, maximum, exclusiveMinimum } = leaf.info.json as Readonly<Record<string, number | undefined>>
  const types = ["{}", "[]", "null", leaf.takesBoolean ? '"true"' : "true"]
  if (leaf.takesNumber) {
    const isWhole = JSON.stringify(leaf.info.json["type"]).includes("integer")
    return [
      ...types,
      ...['"12"', ".nan", ".inf", "-.inf", '"soon"', '""'],
      ...(minimum === undefined ? [] : [String(minimum - 1)]),
      ...(exclusiveMinimum === undefined ? [] : [String(exclusiveMinimum)]),
      ...(maximum === undefined ? ["9007199254740993"].filter(() => isWhole) : [String(maximum + 1)]),
      ...(isWhole ? ["1.5"] : [])
    ]
  }
  if (leaf.takesBoolean) return [...types, "1", '"yes"']
  return leaf.texts === undefined ? [...types, "7", '""'] : [...types, "7", '"nothing of it"']
}

describe("every key", () => {
  it("covers at least the keys of connector seed §4.1", () => {
    assert.isAbove(all.length, 140)
  })

  it.effect("CFG-21 the tree with every key has no mistake in a single value", () =>
    Effect.gen(function* () {
      // Keys that contradict each other stay, such as halt without STRICT, perKey without PER_KEY, dead letters in the source topic, replays to a retry topic, or a group that adopts itself.
      const { paths } = yield* issuesOf(root)
      assert.deepStrictEqual(
        paths.filter(
          (path) =>
            !/handler|retry|adopts|naming|maxPollRecords|onExhausted|perKey|deadLetter\.(topic|origins)$/.test(path)
        ),
        []
      )
    })
  )

  // Defaults have the keys of a binding; the misspellings below reach them, too.
  for (const setting of all.filter(({ path }) => !path.includes("defaults"))) {
    const path = Node.formatPath(setting.path)
    it.effect(`CFG-21 ${path}: a value of the wrong kind or out of range is refused`, () =>
      Effect.gen(function* () {
        for (const value of wrong(setting)) {
          const written = change(root, setting.path, (key) => [[key, { _tag: "Text", text: value }]])
          if (isAllowedHere(setting.path, value)) continue
          yield* isRefused(written, setting.path, `${path}: ${value}`)
        }
      })
    )

    it.effect(`CFG-21, CFG-22 ${path}: a key written twice, in one spelling or in two, is refused`, () =>
      Effect.gen(function* () {
        const key = String(setting.path.at(-1))
        for (const other of Names.spellings(key)) {
          const written = change(root, setting.path, (name, value) => [
            [name, value],
            [other, value]
          ])
          yield* isRefused(written, setting.path, `${path} beside ${other}`)
        }
      })
    )
  }

  it.effect("CFG-21 any misspelling of any key is refused", () =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(
          FastCheck.constantFrom(...all),
          FastCheck.nat(),
          FastCheck.constantFrom("drop", "double", "upper", "underscore"),
          async ({ path }, at, kind) => {
            const key = String(path.at(-1))
            const index = at % key.length
            const misspelled = misspell(key, index, kind)
            const siblings = all.filter(
              (other) => Node.formatPath(other.path.slice(0, -1)) === Node.formatPath(path.slice(0, -1))
            )
            const known = new Set(siblings.flatMap((other) => Names.spellings(String(other.path.at(-1)))))
            FastCheck.pre(!known.has(misspelled))
            const written = change(root, path, (_, value) => [[misspelled, value]])
            await Effect.runPromise(isRefused(written, [...path.slice(0, -1), misspelled], misspelled))
          }
        ),
        { numRuns: 300 }
      )
    )
  )
})

const misspell = (key: string, index: number, kind: string): string => {
  const [before, letter, after] = [key.slice(0, index), key[index]!, key.slice(index + 1)]
  switch (kind) {
    case "drop":
      return before + after || "x"
    case "double":
      return before + letter + letter + after
    case "upper":
      return before + (letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase()) + after
    default:
      return `${before}${letter}_${after}`
  }
}

/** Values that one of several kinds takes, or that an empty section stands for: all its keys have defaults, or it has none that must be. */
const isAllowedHere = (path: Node.Path, value: string): boolean => {
  const key = String(path.at(-1))
  if (key === "ssl") return value === "true" || value === "{}"
  if (key === "bindings" || key === "clusters" || key === "defaults") return value === "{}"
  return ["retryableExceptions", "nonRetryableExceptions", "tiers", "adopts"].includes(key) && value === "[]"
}
