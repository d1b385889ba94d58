import { readFileSync } from "node:fs"
import { assert, describe, expect, it } from "@effect/vitest"
import { Configuration, DefaultsFile, JsonSchema, Settings } from "@eventbus/config"
import { Effect } from "effect"
import * as Shape from "../src/internal/schema/shape.ts"
import * as Names from "../src/internal/tree/names.ts"

const file = (name: string) => new URL(`../${name}`, import.meta.url).pathname

interface Described {
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly anyOf?: ReadonlyArray<Described>
  readonly properties?: Readonly<Record<string, Described>>
  readonly additionalProperties?: Described | boolean
  readonly items?: Described
}

/** Compares each key of the shape with what the document says of it. */
const compare = (shape: Shape.Shape, described: Described, path: string): number => {
  const inner = described.anyOf?.find((each) => each.properties !== undefined) ?? described
  const struct = Shape.select(shape, "Struct")
  const list = Shape.select(shape, "List")
  const dictionary = Shape.select(shape, "Dictionary")
  if (list !== undefined)
    return compare(list.item, inner.items ?? inner.anyOf!.find((each) => each.items)!.items!, path)
  if (dictionary !== undefined) return compare(dictionary.value, inner.additionalProperties as Described, path)
  if (struct === undefined) return 0
  assert.isFalse(inner.additionalProperties, path)
  let count = 0
  for (const [key, { shape: below }] of struct.keys) {
    for (const spelling of Names.spellings(key)) {
      const property = inner.properties?.[spelling]
      assert.isDefined(property, `${path}.${spelling}`)
      assert.strictEqual(property!.title, key)
      assert.include(property!.description!, Shape.description(below))
      const leaf = Shape.select(below, "Leaf")
      if (leaf?.info.fallback !== undefined && below._tag === "Leaf") {
        assert.deepStrictEqual(property!.default, leaf.info.fallback)
      }
      count += 1 + compare(below, property!, `${path}.${spelling}`)
    }
  }
  return count
}

describe("files that the package ships", () => {
  // `npx vitest run packages/config/test/publishedFiles.test.ts -u` writes both.
  it("eventbus.schema.json is the schema of this version", () =>
    expect(`${JSON.stringify(JsonSchema.document, null, 1)}\n`).toMatchFileSnapshot(file("eventbus.schema.json")))

  it("eventbus-defaults.yaml has the defaults of this version", () =>
    expect(DefaultsFile.text).toMatchFileSnapshot(file("eventbus-defaults.yaml")))

  it("CFG-22 the JSON Schema has every key in every spelling, with title, description and default", () => {
    const document = JSON.parse(readFileSync(file("eventbus.schema.json"), "utf8"))
    assert.isAbove(compare(Shape.make(Settings.Root.ast), document, ""), 400)
  })

  it.effect("CFG-09 an absent key means the shipped default, and a user's value wins over it", () =>
    Effect.gen(function* () {
      const bindings = "  bindings:\n    orders: { topic: orders, group-id: billing"
      const plain = yield* Configuration.parse(`eventbus:\n${bindings} }`)
      assert.deepStrictEqual(yield* Configuration.parse(`${DefaultsFile.text}\n${bindings} }`), plain)
      const other = yield* Configuration.parse(
        `${DefaultsFile.text}\n${bindings}, dlt: { replay: { max-replays: 5 } } }`
      )
      assert.deepStrictEqual(other.bindings[0]!.deadLetter, {
        ...plain.bindings[0]!.deadLetter,
        replay: { ...plain.bindings[0]!.deadLetter.replay, maxReplays: 5 }
      })
    })
  )
})
