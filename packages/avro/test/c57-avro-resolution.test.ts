import { assert, describe, it } from "@effect/vitest"
import { Avro } from "@eventbus/avro"
import avro from "avsc"
import { Effect, Result, Schema } from "effect"
import { framed, layer, TestRegistry } from "../../schema-registry/test/registry.ts"

const record = (...fields: ReadonlyArray<object>) => ({ type: "record", name: "Order", fields })

/** Writes a value as a producer in another language does, whose parser does not check defaults. */
const written = (schema: unknown, value: unknown) => avro.Type.forSchema(schema as avro.Schema).toBuffer(value)

interface Read {
  readonly value?: unknown
  readonly detail?: string
}

/** The decoded value, or the reason of the failure. */
const read = Effect.fnUntraced(function* (writer: unknown, reader: object | string | undefined, body: Uint8Array) {
  const server = yield* TestRegistry
  server.byId.set(1, { schema: typeof writer === "string" ? JSON.stringify(writer) : (writer as object) })
  const schema = typeof reader === "string" ? JSON.stringify(reader) : reader
  const serde = yield* Avro.serde(Schema.Unknown, schema === undefined ? {} : { schema })
  yield* serde.prepare?.(framed(1, body)) ?? Effect.void
  return Result.match(serde.decode(framed(1, body)), {
    onSuccess: (value): Read => ({ value: JSON.parse(JSON.stringify(value)) }),
    onFailure: ({ detail }): Read => ({ detail })
  })
}, Effect.provide(layer()))

describe("C57 writer's Avro schema with a default that does not fit; union with null against plain type", () => {
  const id = { name: "id", type: "string" }

  it.effect("defaults of the writer's schema are ignored, in records, unions, arrays, maps and references", () =>
    Effect.gen(function* () {
      const bad = [
        { name: "count", type: "int", default: "none" },
        { name: "note", type: ["null", "string"], default: "" },
        { name: "lines", type: { type: "array", items: record2 }, default: null },
        { name: "byKey", type: { type: "map", values: ["null", record3] }, default: 5 }
      ]
      const good = JSON.parse(JSON.stringify(bad), (key, value) => (key === "default" ? undefined : value))
      const value = {
        id: "o-1",
        count: 2,
        note: null,
        lines: [{ city: "Ulm" }],
        byKey: { a: { street: "x" }, b: null }
      }
      const body = written(record(id, ...good), value)
      assert.deepStrictEqual(yield* read(record(id, ...bad), undefined, body), { value })
      assert.deepStrictEqual(yield* read(record(id, ...bad), record(id), body), { value: { id: "o-1" } })
    })
  )
  const record2 = { type: "record", name: "Address", fields: [{ name: "city", type: "string", default: 7 }] }
  const record3 = { type: "record", name: "Street", fields: [{ name: "street", type: "string", default: [] }] }

  it.effect("a default of the program's own schema that does not fit is an error of the program", () =>
    Effect.gen(function* () {
      const own = record({ name: "count", type: "int", default: "none" })
      const failed = yield* Effect.flip(Avro.serde(Schema.Unknown, { schema: own }).pipe(Effect.provide(layer())))
      assert.strictEqual(failed._tag, "UnusableSchema")
    })
  )

  it.effect("a union with null is read as its plain type; only a real null fails", () =>
    Effect.gen(function* () {
      const writer = ["null", "int"]
      assert.deepStrictEqual(yield* read(writer, "int", written(writer, 5)), { value: 5 })
      assert.deepStrictEqual(yield* read(writer, "double", written(writer, 5)), { value: 5 })
      assert.match((yield* read(writer, "int", written(writer, null))).detail ?? "", /cannot read "null" as "int"/)
      const inRecord = record(id, { name: "count", type: writer })
      const plain = record(id, { name: "count", type: "int" })
      const body = (count: number | null) => written(inRecord, { id: "o-1", count })
      assert.deepStrictEqual(yield* read(inRecord, plain, body(5)), { value: { id: "o-1", count: 5 } })
      assert.match((yield* read(inRecord, plain, body(null))).detail ?? "", /cannot read "null" as "int"/)
    })
  )

  it.effect("only the branch, symbol or item that the reader lacks fails, wherever it is", () =>
    Effect.gen(function* () {
      const wide = ["null", "string", "int"]
      const narrow = ["null", "int"]
      for (const [writer, reader, good, bad] of [
        [wide, narrow, 5, "text"],
        [wide, narrow, null, "text"],
        [{ type: "array", items: wide }, { type: "array", items: "int" }, [1, 2], [1, null]],
        [{ type: "map", values: wide }, { type: "map", values: narrow }, { a: 1, b: null }, { a: "text" }],
        [
          { type: "enum", name: "Colour", symbols: ["RED", "BLUE"] },
          { type: "enum", name: "Colour", symbols: ["BLUE"] },
          "BLUE",
          "RED"
        ],
        [{ type: "array", items: "string" }, { type: "array", items: "int" }, [], ["text"]]
      ] as const) {
        const title = JSON.stringify([writer, reader])
        assert.deepStrictEqual(yield* read(writer, reader, written(writer, good)), { value: good }, title)
        assert.isDefined((yield* read(writer, reader, written(writer, bad))).detail, title)
      }
    })
  )

  it.effect("a record goes into a branch of the reader's union, by its name where branches need one", () =>
    Effect.gen(function* () {
      const writer = record({ name: "count", type: ["null", "int"] })
      const plain = record({ name: "count", type: "int" })
      const body = written(writer, { count: 5 })
      assert.deepStrictEqual(yield* read(writer, ["null", plain], body), { value: { count: 5 } })
      assert.deepStrictEqual(yield* read(writer, ["int", "long", plain], body), { value: { Order: { count: 5 } } })
    })
  )

  it.effect("nested and recursive records resolve field by field; defaults of the reader fill in", () =>
    Effect.gen(function* () {
      const node = (value: unknown, ...more: ReadonlyArray<object>) => ({
        type: "record",
        name: "Node",
        fields: [{ name: "value", type: value }, { name: "next", type: ["null", "Node"] }, ...more]
      })
      const writer = node(["null", "int"], { name: "old", type: "string" })
      const reader = node("int", { name: "added", type: "int", default: 9 })
      const list = (last: number | null) => ({ value: 1, old: "x", next: { value: last, old: "y", next: null } })
      assert.deepStrictEqual(yield* read(writer, reader, written(writer, list(2))), {
        value: { value: 1, next: { value: 2, next: null, added: 9 }, added: 9 }
      })
      assert.isDefined((yield* read(writer, reader, written(writer, list(null)))).detail)
    })
  )

  it.effect("schemas without a common value, cut bytes and bytes too many stay failures", () =>
    Effect.gen(function* () {
      const writer = ["null", "int"]
      const body = written(writer, 300)
      assert.match((yield* read("string", "int", written("string", "x"))).detail ?? "", /^schema 1 cannot be used/)
      assert.match((yield* read(writer, "int", body.subarray(0, 1))).detail ?? "", /truncated buffer/)
      assert.match((yield* read(writer, "int", body.subarray(0, 0))).detail ?? "", /truncated buffer/)
      assert.match((yield* read(writer, "int", Buffer.concat([body, Buffer.of(0)]))).detail ?? "", /trailing data/)
      assert.match((yield* read(writer, "int", Buffer.of(8))).detail ?? "", /invalid union index: 4/)
    })
  )
})
