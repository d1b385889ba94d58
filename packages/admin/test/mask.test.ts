/** OPS-16: the program's own functions decide which parts of a record anybody sees. Nothing is shown that they did not answer. */
import { assert, describe, it } from "@effect/vitest"
import type { Mask } from "@eventbus/admin"
import { type Audit, Binding, LetterTransform, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Layer, Predicate, Schema } from "effect"
import { eventually, start } from "./api.ts"

const dlt = "/eventbus/bindings/orders/dlt"
const canary = "4111-1111-of-anna"

class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {
  override get message(): string {
    return `no money on ${canary}`
  }
}

/** A key, a value, a header, an error and a transform's reason that quote what nobody may see. */
const masked = Effect.fnUntraced(function* (functions: {
  readonly mask?: Mask.Mask
  readonly maskText?: Mask.MaskText
  readonly audit?: Audit.Settings
}) {
  const orders = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", retry: RetryPolicy.none, key: Serde.string },
    value: Serde.json(Schema.Struct({ id: Schema.String, card: Schema.String })),
    onError: { Declined: Route.deadLetter(canary) },
    handler: () => Effect.fail(new Declined()),
    transforms: { lose: () => Effect.fail(new LetterTransform.Skip({ reason: `no card ${canary}` })) }
  })
  const program = yield* start({ bindings: [Binding.rehearsable(orders, Layer.empty)], ...functions })
  const bytes = (text: string) => new TextEncoder().encode(text)
  const value = bytes(JSON.stringify({ id: "o-1", card: canary }))
  yield* program.memory.append("orders", 0, [
    { key: bytes(canary), value, headers: [{ key: "card", value: bytes(canary) }] },
    { key: null, value: bytes(`{"card":"${canary}`), headers: [] }
  ])
  yield* eventually(program.call("GET", `${dlt}/stats`), ({ body }) => body.count === 2)
  return program
})

const withoutCard: Mask.Mask = ({ value }) => ({
  key: "k",
  value: Predicate.isObject(value) ? { ...value, card: "****" } : undefined,
  headers: [{ name: "card", value: "****" }]
})

/** Every answer that may quote a record, after a rehearsal and a plan. */
const answers = Effect.fnUntraced(function* ({ call }: Effect.Success<ReturnType<typeof masked>>) {
  const begun = yield* call("POST", `${dlt}/rehearsals`, { body: { select: { all: true } } })
  const rehearsal = `rehearsals/${begun.body.id}`
  yield* eventually(call("GET", `${dlt}/${rehearsal}`), ({ body }) => body.status === "done")
  const plan = yield* call("POST", `${dlt}/plans`, {
    body: { action: "replay", select: { keys: [canary] }, transform: "lose", reason: "x" }
  })
  assert.deepStrictEqual([plan.status, plan.body.keyCount, plan.body.select.keyCount], [201, undefined, 1])
  const transformed = yield* call("POST", `${dlt}/rehearsals`, { body: { select: { all: true }, transform: "lose" } })
  yield* eventually(call("GET", `${dlt}/rehearsals/${transformed.body.id}`), ({ body }) => body.status === "done")
  const paths = ["groups", "records", "records/0@0", "records/0@1", rehearsal, `rehearsals/${transformed.body.id}`]
  const found = yield* Effect.forEach([...paths, `plans/${plan.body.id}`, "runs"], (path) =>
    call("GET", `${dlt}/${path}`)
  )
  return [plan, ...found]
})

describe("OPS-16 the mask of a program", () => {
  it.live("shows what it answers, and no other byte of key, value and headers, to callers with view-payload", () =>
    Effect.gen(function* () {
      const program = yield* masked({ mask: withoutCard })
      const { body, text } = yield* program.call("GET", `${dlt}/records/0@0`)
      assert.deepStrictEqual(body.payload, {
        mask: "applied",
        key: { bytes: canary.length, decoded: "k" },
        value: { bytes: 39, decoded: { id: "o-1", card: "****" } },
        headers: [{ name: "card", value: "****" }],
        causes: []
      })
      assert.notInclude(text, canary)
      for (const answer of yield* answers(program)) assert.notInclude(answer.text, canary)
      // Nobody finds out by searching what is hidden.
      assert.deepStrictEqual((yield* program.call("GET", `${dlt}/records?text=${canary}`)).body.letters, [])
    })
  )

  it.live("maskText decides about keys in lists, messages of errors and reasons in words", () =>
    Effect.gen(function* () {
      const program = yield* masked({ mask: withoutCard, maskText: (text) => text.replaceAll(canary, "****") })
      const { body } = yield* program.call("GET", `${dlt}/records/0@0`)
      assert.deepStrictEqual([body.exceptionMessage, body.detail, body.key], ["no money on ****", "****", "****"])
      const found = yield* answers(program)
      for (const answer of found) assert.notInclude(answer.text, canary)
      assert.deepStrictEqual(found[0]!.body.select.keys, ["****"])
      assert.match(found[6]!.body.report.letters[0].message, /no card \*\*\*\*$/)
    })
  )

  it.live("ruling 86: a mask that throws, or answers something else, hides the payload, and the answer says so", () =>
    Effect.gen(function* () {
      const misbehaving: ReadonlyArray<unknown> = [
        () => {
          throw new Error(canary)
        },
        () => undefined,
        () => canary,
        () => Promise.reject(new Error(canary)),
        () => ({ value: canary, headers: canary }),
        () => ({ value: canary, headers: [{ name: 7 }] }),
        () => new Proxy({}, { get: () => assert.fail(canary) })
      ]
      for (const mask of misbehaving) {
        const program = yield* masked({ mask: mask as Mask.Mask, maskText: () => 7 as never })
        const { status, body, text } = yield* program.call("GET", `${dlt}/records/0@0`)
        assert.strictEqual(status, 200)
        assert.deepStrictEqual(body.payload.mask, "failed", String(mask))
        assert.deepStrictEqual([body.payload.key, body.payload.headers], [{ bytes: canary.length }, []])
        assert.match(body.exceptionMessage, /hidden: the mask of the program failed/)
        assert.notInclude(text, canary, String(mask))
      }
      // A value that JSON cannot hold is hidden.
      const circular: Record<string, unknown> = { canary }
      circular["self"] = circular
      for (const value of [circular, () => canary, new Proxy({}, { getPrototypeOf: () => assert.fail(canary) })]) {
        const program = yield* masked({ mask: () => ({ value }) })
        const { body, text } = yield* program.call("GET", `${dlt}/records/0@0`)
        assert.deepStrictEqual(body.payload.value, { bytes: 39 })
        assert.notInclude(text, canary)
      }
    })
  )

  it.live("OPS-25 a masked payload is audited as one that is shown, and no entry quotes the record", () =>
    Effect.gen(function* () {
      const failing: Mask.Mask = () => {
        throw new Error(canary)
      }
      for (const mask of [withoutCard, failing]) {
        const { call } = yield* masked({ mask, audit: {} })
        yield* call("GET", `${dlt}/records/0@0`)
        const { body, text } = yield* call("GET", "/eventbus/audit")
        assert.strictEqual(body.entries.length, 1)
        const [{ by, action, binding, permissions, target, outcome }] = body.entries
        assert.deepStrictEqual(
          [by, action, binding, permissions, target, outcome],
          ["operator", "record", "default:orders", ["view", "view-payload"], { position: "0@0" }, "done"]
        )
        assert.notInclude(text, canary)
      }
    })
  )

  it.live("without a mask, callers with view-payload see all of it", () =>
    Effect.gen(function* () {
      const { call } = yield* masked({})
      const { body } = yield* call("GET", `${dlt}/records/0@0`)
      assert.deepStrictEqual(
        [body.payload.mask, body.payload.value.decoded.card, body.key, body.exceptionMessage],
        [undefined, canary, canary, `no money on ${canary}`]
      )
    })
  )
})
