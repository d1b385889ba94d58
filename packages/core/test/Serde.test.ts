import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import * as Serde from "../src/Serde.ts"

const Order = Schema.Struct({
  id: Schema.String,
  version: Schema.Literal(2),
  status: Schema.Literals(["open", "paid"]),
  items: Schema.Array(Schema.Struct({ price: Schema.Finite }))
})
const order = { id: "o-1", version: 2, status: "open", items: [{ price: 1 }] } as const

const encodeText = (text: string) => new TextEncoder().encode(text)
const failureOf = <A>(result: Result.Result<A, Serde.DecodeFailure>) =>
  Result.isFailure(result) ? result.failure : expect.unreachable("was decoded")
const decodeOrder = (text: string) => failureOf(Serde.json(Order).decode(encodeText(text)))

describe("Serde.json", () => {
  it("SER-05 refuses malformed JSON, a missing field, an invalid enum value and another schema version, each with its path", () => {
    expect(decodeOrder("{").path).toBe("")
    expect(decodeOrder("{").serde).toBe("json")
    expect(decodeOrder(JSON.stringify({ ...order, id: undefined }))).toMatchObject({
      path: '["id"]',
      detail: 'Missing key at ["id"]'
    })
    expect(decodeOrder(JSON.stringify({ ...order, status: "lost" })).detail).toBe(
      'Expected "open" | "paid" at ["status"]'
    )
    expect(decodeOrder(JSON.stringify({ ...order, version: 1 })).path).toBe('["version"]')
    expect(decodeOrder(JSON.stringify({ ...order, items: [{ price: "1" }] })).path).toBe('["items"][0]["price"]')
  })

  it("SER-05 names all problems at once, up to a limit", () => {
    const failure = decodeOrder(JSON.stringify({ ...order, status: "lost", items: [{}, { price: "x" }] }))
    expect(failure.detail).toBe(
      'Expected "open" | "paid" at ["status"]; Missing key at ["items"][0]["price"]; Expected number at ["items"][1]["price"]'
    )
    const many = decodeOrder(JSON.stringify({ ...order, items: Array.from({ length: 100 }, () => ({})) }))
    expect(many.detail).toContain("and 80 more")
  })

  it("refuses bytes that are not UTF-8, and says so", () => {
    expect(failureOf(Serde.json(Schema.String).decode(Uint8Array.of(0x22, 0xff, 0x22))).detail).toContain("utf-8")
  })

  it("SER-09 C13 distinguishes a tombstone, zero bytes and the text null", () => {
    const strict = Serde.json(Schema.NullOr(Order))
    expect(failureOf(strict.decode(null)).detail).toBe(
      "null arrived: a tombstone, or a record without a key; use Serde.nullable"
    )
    expect(failureOf(strict.decode(new Uint8Array())).detail).toBe("zero bytes are not JSON")
    expect(Result.getOrThrow(strict.decode(encodeText("null")))).toBeNull()
    expect(decodeOrder("null").detail).toBe("Expected object")
    // null as a value of the schema is written as text: only `nullable` writes tombstones.
    expect(Result.getOrThrow(strict.encode(null))).toEqual(encodeText("null"))
  })

  it("types that JSON does not have come back as they were written", () => {
    const serde = Serde.json(
      Schema.Struct({ at: Schema.Date, amount: Schema.BigInt, note: Schema.NullOr(Schema.String) })
    )
    fc.assert(
      fc.property(
        fc.record({
          at: fc.date({ noInvalidDate: true }),
          amount: fc.bigInt(),
          note: fc.option(fc.string({ unit: "grapheme" }))
        }),
        (value) => {
          expect(Result.getOrThrow(Result.flatMap(serde.encode(value), serde.decode))).toEqual(value)
        }
      )
    )
  })

  it("decodes its own encoding, and never throws on other bytes", () => {
    const serde = Serde.json(Schema.Json)
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        // JSON has no negative zero.
        const written = JSON.parse(JSON.stringify(value))
        expect(Result.getOrThrow(Result.flatMap(serde.encode(written), serde.decode))).toEqual(written)
      })
    )
    const strict = Serde.json(Order)
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.json().map(encodeText)), (bytes) => {
        expect(Result.isFailure(strict.decode(bytes))).toBe(true)
      })
    )
  })

  it("refuses to write a value outside the schema, with its path", () => {
    const result = Serde.json(Order).encode({ ...order, items: [{ price: Number.NaN }] })
    expect(Result.isFailure(result) && result.failure).toMatchObject({
      _tag: "EncodeFailure",
      path: '["items"][0]["price"]'
    })
  })

  it("treats names such as __proto__ and constructor as ordinary properties", () => {
    const serde = Serde.json(Schema.Record(Schema.String, Schema.Finite))
    const value = Result.getOrThrow(serde.decode(encodeText('{"constructor":1,"toString":2}')))
    expect(Object.entries(value)).toEqual([
      ["constructor", 1],
      ["toString", 2]
    ])
  })
})

describe("Serde.string, bytes, nullable, make", () => {
  it("SER-09 ruling 86 what `encode` gives must be bytes: anything else is a failure, which names its kind and does not show it", () => {
    for (const [given, kind] of [
      ["4 characters", "string"],
      [undefined, "undefined"],
      [null, "null"],
      [7, "number"],
      [{ id: 1 }, "a plain object"],
      [new ArrayBuffer(4), "a plain object"]
    ] as const) {
      const serde = Serde.make({ name: "own", decode: (of) => of, encode: () => given as unknown as Uint8Array })
      const result = serde.encode(new Uint8Array())
      expect(Result.isFailure(result) && result.failure.detail).toBe(
        `encode returned ${kind}; a Uint8Array is expected`
      )
    }
    const buffer = Serde.make({ name: "own", decode: (of) => of, encode: () => Buffer.from("a") })
    expect(Result.getOrThrow(buffer.encode(new Uint8Array()))).toEqual(Buffer.from("a"))
  })

  it("string is exact for every text that UTF-8 can carry, a byte order mark included", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(Result.getOrThrow(Result.flatMap(Serde.string.encode(text), Serde.string.decode))).toBe(text)
      }),
      { examples: [["\uFEFFwith a mark"], [""]] }
    )
    expect(failureOf(Serde.string.decode(Uint8Array.of(0xc3, 0x28))).serde).toBe("string")
    expect(Result.isFailure(Serde.string.encode("\uD800"))).toBe(true)
  })

  it("bytes hands over the same bytes, and null", () => {
    const given = Uint8Array.of(0, 255)
    expect(Result.getOrThrow(Serde.bytes.decode(given))).toBe(given)
    expect(Result.getOrThrow(Serde.bytes.decode(null))).toBeNull()
    expect(Result.getOrThrow(Serde.bytes.encode(null))).toBeNull()
    expect(Result.getOrThrow(Result.flip(Serde.bytes.encode("text" as never))).message).toBe(
      "bytes cannot encode the value: Expected a Uint8Array or null, got string"
    )
  })

  it("SER-09 nullable passes null through in both directions and delegates other values to its serde", () => {
    const serde = Serde.nullable(Serde.string)
    expect(Result.getOrThrow(serde.decode(null))).toBeNull()
    expect(Result.getOrThrow(serde.encode(null))).toBeNull()
    expect(Result.getOrThrow(serde.decode(new Uint8Array()))).toBe("")
    expect(failureOf(serde.decode(Uint8Array.of(0xff))).serde).toBe("string")
  })

  it("SER-08 a custom serde fails by throwing, whatever it throws", () => {
    const broken = (thrown: unknown) =>
      Serde.make<number>({
        name: "broken",
        decode: () => {
          throw thrown
        },
        encode: () => {
          throw thrown
        }
      })
    expect(failureOf(broken(new TypeError("bad magic")).decode(Uint8Array.of(1)))).toMatchObject({
      serde: "broken",
      detail: "bad magic"
    })
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        expect(failureOf(broken(thrown).decode(Uint8Array.of(1)))._tag).toBe("DecodeFailure")
        expect(Result.isFailure(broken(thrown).encode(1))).toBe(true)
      })
    )
    expect(failureOf(broken("never asked").decode(null)).detail).toContain("Serde.nullable")
  })

  it("SER-08 a custom format may read headers, and a schema checks it with the path of each problem", () => {
    const separated = Serde.checked(Schema.Struct({ id: Schema.FiniteFromString, to: Schema.NonEmptyString }), {
      name: "separated",
      decode: (bytes, source) => {
        const by = new TextDecoder().decode(
          source?.headers.find(({ key }) => key === "separator")?.value ?? encodeText(",")
        )
        const [id, to] = new TextDecoder().decode(bytes).split(by)
        return { id, to }
      },
      encode: ({ id, to }) => encodeText(`${id},${to}`)
    })
    const source = { headers: [{ key: "separator", value: encodeText(";") }] }
    expect(Result.getOrThrow(separated.decode(encodeText("7;ann"), source))).toEqual({ id: 7, to: "ann" })
    expect(Result.getOrThrow(separated.encode({ id: 7, to: "ann" }))).toEqual(encodeText("7,ann"))
    expect(failureOf(separated.decode(encodeText("7;ann")))).toMatchObject({
      serde: "separated",
      path: '["id"]',
      detail: expect.stringContaining('at ["to"]')
    })
    expect(Result.isFailure(separated.encode({ id: 7, to: "" }))).toBe(true)
  })
})
