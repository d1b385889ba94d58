/** OPS-06: the difference between a dead letter and what a transform makes of it, line by line, for whoever may see it. */
import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer, type DeadLetterAnswers, type Mask } from "@eventbus/admin"
import { type Audit, Binding, LetterTransform, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Redacted, Schema } from "effect"
import * as fc from "fast-check"
import * as LineDiff from "../src/internal/difference/lineDiff.ts"
import { prettyJson } from "../src/internal/difference/prettyJson.ts"
import { callOf, eventually, Refused, start, token } from "./api.ts"

const dlt = "/eventbus/bindings/orders/dlt"
const card = "4111-1111-of-anna"

const textOf = (bytes: Uint8Array | null) => new TextDecoder().decode(bytes ?? new Uint8Array())
const bytesOf = (text: string) => new TextEncoder().encode(text)

const Order = Schema.Struct({ id: Schema.String, card: Schema.String, lines: Schema.Array(Schema.String) })

/** Dead letters with these values, and the functions that repair them. */
const withLetters = Effect.fnUntraced(function* (
  values: ReadonlyArray<string | Uint8Array | null>,
  options: {
    readonly mask?: Mask.Mask
    readonly maskText?: Mask.MaskText
    readonly audit?: Audit.Settings
    readonly bytes?: boolean
  } = {}
) {
  const { bytes = false, ...layer } = options
  const value: Serde.Any = bytes ? Serde.bytes : Serde.json(Order)
  const orders = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", retry: RetryPolicy.none, key: Serde.string, value },
    onError: { Refused: Route.deadLetter("refused") },
    handler: () => Effect.fail(new Refused()),
    transforms: {
      repair: (letter) => Effect.succeed({ value: { lines: [], ...JSON.parse(textOf(letter.value)), id: "o-2" } }),
      skip: () => Effect.fail(new LetterTransform.Skip({ reason: `no card ${card}` })),
      binary: () => Effect.succeed({ value: new Uint8Array([255, 1]) }),
      same: (letter) => Effect.succeed({ value: letter.value })
    }
  })
  const program = yield* start({ bindings: [orders], ...layer })
  const records = values.map((each) => ({
    ...{ key: bytesOf(card), value: typeof each === "string" ? bytesOf(each) : each },
    headers: [{ key: "card", value: bytesOf(card) }]
  }))
  yield* program.memory.append("orders", 0, records)
  yield* eventually(program.call("GET", `${dlt}/stats`), ({ body }) => body.count === values.length)
  const transformed = (name: string, position = "0@0", caller = token) =>
    program.call("GET", `${dlt}/records/${position}/transformed?transform=${name}`, { token: caller })
  return { ...program, transformed }
})

type Lines = ReadonlyArray<DeadLetterAnswers.DiffLine>

const linesOf = (lines: Lines): ReadonlyArray<string> => lines.map(({ sign, text }) => `${sign}${text}`)

const order = (more = "") => `{"id":"o-1","card":"${card}"${more}}`

describe("OPS-06 the difference of a transform over HTTP", () => {
  it.live("is told in lines of the published JSON, with the header of the copy; the key stays", () =>
    Effect.gen(function* () {
      const { transformed } = yield* withLetters([order()])
      const { status, body } = yield* transformed("repair")
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(
        [body.position, body.transform, body.state, body.outcome, body.changed, body.decodable],
        ["0@0", "repair", "waiting", "copied", ["value", "headers"], true]
      )
      assert.deepStrictEqual(body.difference.key, [])
      assert.deepStrictEqual(linesOf(body.difference.value), [
        ...[" {", '-  "id": "o-1",', `-  "card": "${card}"`],
        ...['+  "id": "o-2",', `+  "card": "${card}",`, '+  "lines": []', " }"]
      ])
      assert.include(linesOf(body.difference.headers), "+x-eventbus-transformed-by: repair")
    })
  )

  it.live("a letter that the transform leaves says why, and what no serde can read is told in the same way", () =>
    Effect.gen(function* () {
      const { transformed, call } = yield* withLetters([order(), "{"])
      const skipped = yield* transformed("skip")
      assert.deepStrictEqual(
        [skipped.body.outcome, skipped.body.reason, skipped.body.difference],
        ["stays", `Transform 'skip' skips it: no card ${card}`, undefined]
      )
      const failing = yield* transformed("repair", "0@1")
      assert.strictEqual(failing.body.outcome, "stays")
      assert.match(failing.body.reason, /^Transform 'repair' failed: SyntaxError/)
      const invalid = yield* transformed("same")
      assert.match(invalid.body.reason, /made a value that cannot be encoded/)
      const unknown = yield* transformed("mend")
      assert.deepStrictEqual([unknown.status, unknown.body._tag], [400, "InvalidArgument"])
      assert.include(unknown.body.message, "repair, skip, binary, same")
      assert.strictEqual((yield* transformed("repair", "0@99")).status, 404)
      const missing = yield* call("GET", `${dlt}/records/0@0/transformed`)
      assert.deepStrictEqual([missing.status, missing.body.issues[0].path], [400, "transform"])
    })
  )

  it.live("bytes that are no text are told by size and hash, and a tombstone has no line", () =>
    Effect.gen(function* () {
      const before = new Uint8Array([254, 0, 1])
      const { transformed } = yield* withLetters([before, null, "plain"], { bytes: true })
      const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")
      const made = `+binary, 2 bytes, SHA-256 ${hash(new Uint8Array([255, 1]))}`
      const lines = Effect.fnUntraced(function* (position: string) {
        return linesOf((yield* transformed("binary", position)).body.difference.value)
      })
      assert.deepStrictEqual(yield* lines("0@0"), [`-binary, 3 bytes, SHA-256 ${hash(before)}`, made])
      assert.deepStrictEqual(yield* lines("0@1"), [made])
      assert.deepStrictEqual(yield* lines("0@2"), ["-plain", made])
      const { body } = yield* transformed("same", "0@0")
      assert.deepStrictEqual([body.changed, body.difference.value], [["headers"], []])
    })
  )

  it.live("OPS-16 without view-payload neither a line nor a reason is told, and the permission is transform", () =>
    Effect.gen(function* () {
      const { context } = yield* withLetters([order()])
      const authorizer = Authorizer.fromTokens([
        { token: Redacted.make("mender"), name: "mender", permissions: ["view", "transform"] },
        { token: Redacted.make("viewer"), name: "viewer", permissions: ["view", "view-payload"] }
      ])
      const call = callOf(yield* Effect.provideContext(AdminWeb.make({ authorizer }), context))
      const of = (name: string, caller: string) =>
        call("GET", `${dlt}/records/0@0/transformed?transform=${name}`, { token: caller })
      const copied = yield* of("repair", "mender")
      assert.deepStrictEqual(copied.body, {
        ...{ position: "0@0", transform: "repair", state: "waiting", outcome: "copied" },
        ...{ changed: ["value", "headers"], decodable: true }
      })
      const skipped = yield* of("skip", "mender")
      assert.deepStrictEqual([skipped.body.outcome, skipped.body.reason], ["stays", undefined])
      assert.strictEqual((yield* of("repair", "viewer")).status, 403)
    })
  )

  it.live("OPS-16 a mask decides what the lines show; where it fails, there is none", () =>
    Effect.gen(function* () {
      const mask: Mask.Mask = ({ value }) => ({
        value: value instanceof Uint8Array ? undefined : { ...(value as object), card: "****" },
        headers: []
      })
      const masked = yield* withLetters([order(',"lines":[]')], { mask })
      const { body, text } = yield* masked.transformed("repair")
      assert.deepStrictEqual(linesOf(body.difference.value), [
        ...[" {", '-  "id": "o-1",', '+  "id": "o-2",', '   "card": "****",', '   "lines": []', " }"]
      ])
      assert.deepStrictEqual(linesOf(body.difference.headers), ["…The mask hides what differs"])
      assert.deepStrictEqual([body.difference.mask, text.includes(card)], ["applied", false])
      const skipped = yield* masked.transformed("skip")
      assert.deepStrictEqual([skipped.body.reason, skipped.text.includes(card)], [undefined, false])
      const unread = yield* withLetters([order()], { mask })
      assert.strictEqual(linesOf((yield* unread.transformed("repair")).body.difference.value)[0], "-hidden")
      const failing = yield* withLetters([order()], {
        mask: () => {
          throw new Error(card)
        }
      })
      const hidden = yield* failing.transformed("repair")
      assert.deepStrictEqual(hidden.body.difference, { key: [], value: [], headers: [], mask: "failed" })
      assert.notInclude(hidden.text, card)
    })
  )

  it.live("OPS-06 OPS-07 the sample of a plan is told in the same way; a plan without a transform has none", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters([order(), order(), order()])
      const plan = Effect.fnUntraced(function* (more: object) {
        const body = { action: "replay", select: { all: true }, reason: "x", ...more }
        return (yield* call("POST", `${dlt}/plans`, { body })).body.id
      })
      const id = yield* plan({ transform: "repair" })
      const { status, body } = yield* call("GET", `${dlt}/plans/${id}/sample?count=2`)
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(
        body.letters.map(({ position, outcome }: DeadLetterAnswers.Transformed) => [position, outcome]),
        [
          ["0@0", "copied"],
          ["0@1", "copied"]
        ]
      )
      assert.strictEqual((yield* call("GET", `${dlt}/plans/${id}/sample`)).body.letters.length, 3)
      const bare = yield* call("GET", `${dlt}/plans/${yield* plan({})}/sample`)
      assert.deepStrictEqual(bare.body.letters, [])
      const unknown = yield* call("GET", `${dlt}/plans/${id.replace(/^./, "0")}x/sample`)
      assert.include([400, 404], unknown.status)
    })
  )

  it.live("OPS-25 each look is audited as a payload that was shown, and names the transform", () =>
    Effect.gen(function* () {
      const { call, transformed } = yield* withLetters([order()], { audit: {} })
      yield* transformed("repair")
      const { body, text } = yield* call("GET", "/eventbus/audit")
      assert.strictEqual(body.entries.length, 1)
      const [{ action, permissions, target, outcome }] = body.entries
      assert.deepStrictEqual(
        [action, permissions, target, outcome],
        ["transformed", ["transform", "view-payload"], { position: "0@0", transform: "repair" }, "done"]
      )
      assert.notInclude(text, card)
    })
  )

  it.live("the permissions of a caller name the transforms that it may use", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters([])
      const { body } = yield* call("GET", "/eventbus/bindings/orders/permissions")
      assert.deepStrictEqual(body.transforms, ["repair", "skip", "binary", "same"])
    })
  )
})

describe("lines in which two texts differ", () => {
  /** The first text, made of the difference and the second one, and the other way round. */
  const rebuilt = (lines: Lines, of: "-" | "+", whole: ReadonlyArray<string>): ReadonlyArray<string> => {
    const built: Array<string> = []
    for (const { sign, text } of lines) {
      if (sign === "…") built.push(...whole.slice(built.length, built.length + Number.parseInt(text, 10)))
      else if (sign === " " || sign === of) built.push(text)
    }
    return built
  }

  it("OPS-06 give both texts back, whatever they are", () => {
    const texts = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 30 })
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        const lines = LineDiff.of(before, after)
        if (lines.length === 0) assert.deepStrictEqual(before, after)
        else {
          assert.deepStrictEqual(rebuilt(lines, "-", before), before)
          assert.deepStrictEqual(rebuilt(lines, "+", after), after)
        }
      }),
      { numRuns: 2_000 }
    )
  })

  it("OPS-06 are few where few lines of many differ, and bounded where all do", () => {
    const before = Array.from({ length: 200_000 }, (_, index) => String(index))
    const after = before.map((line, index) => (index === 5 || index === 190_000 ? "other" : line))
    assert.deepStrictEqual(linesOf(LineDiff.of(before, after)), [
      ...["…2 lines stay as they are", " 2", " 3", " 4", "-5", "+other", " 6", " 7", " 8"],
      ...["…189988 lines stay as they are", " 189997", " 189998", " 189999", "-190000", "+other"],
      ...[" 190001", " 190002", " 190003", "…9996 lines stay as they are"]
    ])
    const from = performance.now()
    const bounded = LineDiff.of(
      before,
      before.map((line) => `${line}x`)
    )
    assert.isBelow(performance.now() - from, 5_000)
    assert.strictEqual(bounded.length, 401)
    assert.deepStrictEqual(bounded.at(-1), { sign: "…", text: "399600 more lines" })
  })

  it("OPS-06 long lines are shown where they differ", () => {
    const long = "x".repeat(100_000)
    assert.deepStrictEqual(linesOf(LineDiff.of([`${long}1${long}`], [`${long}2${long}`])), [
      `-…${"x".repeat(60)}1${"x".repeat(60)}…`,
      `+…${"x".repeat(60)}2${"x".repeat(60)}…`
    ])
    assert.match(LineDiff.of([], [long])[0]!.text, /^x{1000}… \(100000 characters\)$/)
  })

  it("OPS-06 JSON keeps the digits of its numbers, and no depth makes it long", () => {
    assert.strictEqual(
      prettyJson('{"a":[1,{"b":9007199254740993}],"c":{},"d":"x,{\\"y\\""}'),
      '{\n  "a": [\n    1,\n    {\n      "b": 9007199254740993\n    }\n  ],\n  "c": {},\n  "d": "x,{\\"y\\""\n}'
    )
    assert.isUndefined(prettyJson("{"))
    const deep = `${"[".repeat(5_000)}1${"]".repeat(5_000)}`
    assert.isBelow(prettyJson(deep)!.length, 1_000_000)
  })
})
