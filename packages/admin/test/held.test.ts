/** OPS-11: records that hold their partition, decided about over HTTP: exactly the one that the caller saw, with a reason, and by the permission for it. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { Binding, DeadLetter, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger, Redacted, Schema } from "effect"
import { type Answer, callOf, eventually, Refused, start } from "./api.ts"

const shown = ({ status, body }: Answer) => [status, body._tag]
const of = "/eventbus/bindings/orders"
const canary = "canary-4111"

type Entry = Readonly<Record<string, unknown>>

class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {
  override get message(): string {
    return `no money on ${canary}`
  }
}

/** A binding that halts at the first of the values that is bad, and notes what it handles. */
const halted = Effect.fnUntraced(function* (...values: ReadonlyArray<string>) {
  const handled: Array<string> = []
  const orders = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", value: Serde.string },
    onError: { Declined: Route.pause },
    handler: ({ value }) =>
      value.startsWith("bad") ? Effect.fail(new Declined()) : Effect.sync(() => void handled.push(value))
  })
  const program = yield* start({ bindings: [orders], audit: {} })
  yield* program.append("orders", ...values)
  const held = yield* eventually(program.call("GET", `${of}/held`), ({ body }) => body.held.length === 1)
  return { ...program, handled, held: held.body.held[0] }
})

const untilHandled = (handled: ReadonlyArray<string>, count: number) =>
  eventually(
    Effect.sync(() => handled.length),
    (length) => length === count
  )

describe("OPS-11 held records over HTTP", () => {
  it.live("a held record is listed with its place, its error and the decisions that it allows", () =>
    Effect.gen(function* () {
      const { call, held } = yield* halted("good", "bad", "last")
      assert.match(held.since, /^\d{4}-.*Z$/)
      assert.deepStrictEqual(
        { ...held, since: "" },
        {
          ...{ position: "0@1", topic: "orders", kind: "record", decisions: ["skip", "dead-letter"], since: "" },
          ...{ exceptionClass: "Declined", message: `no money on ${canary}` }
        }
      )
      assert.strictEqual((yield* call("GET", of)).body.undecided, 1)
    })
  )

  it.live("skip drops exactly the named record, and its partition goes on", () =>
    Effect.gen(function* () {
      const { call, handled } = yield* halted("good", "bad", "last")
      const headers = { "idempotency-key": "INC-1204" }
      const answer = yield* call("POST", `${of}/held/0@1/skip?reason=INC-1204`, { headers })
      assert.deepStrictEqual([answer.status, answer.body.key], [200, "default:orders"])
      // The same key for another record is another request.
      const other = yield* call("POST", `${of}/held/0@2/skip?reason=INC-1204`, { headers })
      assert.deepStrictEqual(shown(other), [422, "IdempotencyKeyReused"])
      yield* untilHandled(handled, 2)
      assert.deepStrictEqual(handled, ["good", "last"])
      const after = yield* call("GET", of)
      assert.deepStrictEqual([after.body.undecided, (yield* call("GET", `${of}/held`)).body.held], [undefined, []])
      assert.strictEqual((yield* call("GET", `${of}/dlt/stats`)).body.count, 0)
    })
  )

  it.live("dead-letter stores it with reason MANUAL and the caller's words, and its partition goes on", () =>
    Effect.gen(function* () {
      const { call, handled } = yield* halted("good", "bad", "last")
      const answer = yield* call("POST", `${of}/held/0@1/dead-letter?topic=orders&reason=the%20order%20is%20broken`)
      assert.strictEqual(answer.status, 200)
      yield* untilHandled(handled, 2)
      const { body } = yield* eventually(call("GET", `${of}/dlt/records`), ({ body }) => body.letters.length === 1)
      const [{ reason, detail, originalOffset }] = body.letters
      assert.deepStrictEqual([reason, detail, originalOffset], ["MANUAL", "the order is broken", "1"])
    })
  )

  it.live(
    "DLT-20 dead letters that the custom handler cannot read are listed, counted, and passed by their place",
    () =>
      Effect.gen(function* () {
        const got: Array<string> = []
        const text = (bytes: Uint8Array | null) => new TextDecoder().decode(bytes ?? new Uint8Array())
        const orders = Binding.make("orders", {
          ...{ topic: "orders", groupId: "billing", value: Serde.string, maxBufferedBytes: 4_000 },
          deadLetter: DeadLetter.custom(({ value }) => Effect.sync(() => void got.push(text(value)))),
          handler: () => Effect.void
        })
        const memory = yield* MemoryBroker.make()
        for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic)
        const bytes = (value: string) => ({ key: null, value: new TextEncoder().encode(value), headers: [] })
        yield* memory.append("orders.DLT", 0, [
          bytes("before"),
          { ...bytes("x".repeat(5_000)), compression: "gzip" },
          bytes("behind")
        ])
        const program = yield* start({ bindings: [orders], memory })
        const { body } = yield* eventually(program.call("GET", `${of}/held`), ({ body }) => body.held.length === 1)
        const [{ since, detail, ...batch }] = body.held
        assert.match(since, /^\d{4}-.*Z$/)
        assert.match(detail, /maxBufferedBytes/)
        assert.deepStrictEqual(batch, {
          ...{ position: "0@1", topic: "orders.DLT", kind: "batch", decisions: ["skip"], lastOffset: "1" }
        })
        assert.strictEqual((yield* program.call("GET", of)).body.undecided, 1)
        const passed = yield* program.call("POST", `${of}/held/0@1/skip?reason=INC-1204&topic=orders.DLT`)
        assert.strictEqual(passed.status, 200)
        yield* untilHandled(got, 2)
        assert.deepStrictEqual(got, ["before", "behind"])
        assert.deepStrictEqual((yield* program.call("GET", `${of}/held`)).body.held, [])
      })
  )

  it.live("a decision about a record that is not held any more is 409, names those that are, and changes nothing", () =>
    Effect.gen(function* () {
      const { call, handled } = yield* halted("bad", "bad again", "last")
      assert.strictEqual((yield* call("POST", `${of}/held/0@0/skip?reason=x`)).status, 200)
      yield* eventually(call("GET", `${of}/held`), ({ body }) => body.held[0]?.position === "0@1")
      // A second click, and one about another topic.
      for (const path of ["0@0/skip?reason=x", "0@0/dead-letter?reason=x", "0@1/skip?reason=x&topic=payments"]) {
        const late = yield* call("POST", `${of}/held/${path}`)
        assert.deepStrictEqual([...shown(late), late.body.held], [409, "RecordNotHeld", ["orders-0@1"]], path)
      }
      assert.strictEqual((yield* call("GET", `${of}/held`)).body.held[0].position, "0@1")
      assert.deepStrictEqual(handled, [])
    })
  )

  it.live("ADM-12 a decision without a reason, or without a position, is 400 with its path", () =>
    Effect.gen(function* () {
      const { call } = yield* halted("bad")
      for (const [path, name] of [
        ["0@0/skip", "reason"],
        ["0@0/dead-letter?reason=%20", "reason"],
        ["0@0/skip?reason=x&topic=a%20b", "topic"],
        ["0/skip?reason=x", "position"],
        ["0@-1/dead-letter?reason=x", "position"]
      ] as const) {
        const answer = yield* call("POST", `${of}/held/${path}`)
        assert.deepStrictEqual(
          [...shown(answer), answer.body.issues.map((issue: { readonly path: string }) => issue.path)],
          [400, "InvalidRequest", [name]],
          path
        )
      }
      assert.deepStrictEqual(shown(yield* call("GET", "/eventbus/bindings/nobody/held")), [404, "BindingNotFound"])
      assert.strictEqual((yield* call("GET", `${of}/held`)).body.held.length, 1)
    })
  )

  it.live(
    "OPS-16 skip needs discard, dead-letter needs operate, the message needs view-payload; who and why are logged",
    () =>
      Effect.gen(function* () {
        const { context } = yield* halted("bad", "bad again", "last")
        const lines: Array<string> = []
        const logger = Logger.make(({ message }) => void lines.push(String(message)))
        const tokenOf = (...permissions: ReadonlyArray<Authorizer.Permission>) => ({
          ...{ token: Redacted.make(permissions.join("+")), name: permissions.join("+"), permissions }
        })
        const authorizer = Authorizer.fromTokens([
          ...[tokenOf("view"), tokenOf("view", "operate"), tokenOf("view", "discard"), tokenOf("view", "view-payload")]
        ])
        const web = yield* AdminWeb.make({ authorizer }).pipe(
          Effect.provideContext(context),
          Effect.provide(Logger.layer([logger]))
        )
        const as = (name: string, method: string, path: string) => callOf(web)(method, `${of}${path}`, { token: name })
        for (const name of ["view", "view+operate", "view+discard"])
          assert.notInclude((yield* as(name, "GET", "/held")).text, canary, name)
        assert.include((yield* as("view+view-payload", "GET", "/held")).text, canary)
        for (const [name, verb] of [
          ["view", "skip"],
          ["view", "dead-letter"],
          ["view+operate", "skip"],
          ["view+discard", "dead-letter"]
        ] as const) {
          const refused = yield* as(name, "POST", `/held/0@0/${verb}?reason=x`)
          assert.deepStrictEqual(shown(refused), [403, "Forbidden"], `${name} ${verb}`)
        }
        assert.strictEqual((yield* as("view+operate", "POST", "/held/0@0/dead-letter?reason=INC-1204")).status, 200)
        yield* eventually(as("view", "GET", "/held"), ({ body }) => body.held[0]?.position === "0@1")
        assert.strictEqual((yield* as("view+discard", "POST", "/held/0@1/skip?reason=INC-1205")).status, 200)
        const of0 = "of binding 'default:orders' by"
        assert.include(lines, `Admin API: deadLetterHeld ${of0} view+operate: done, because: INC-1204`)
        assert.include(lines, `Admin API: skipHeld ${of0} view+discard: done, because: INC-1205`)
      })
  )

  it.live("OPS-25 the audit log has each decision with its record, topic and reason, and who saw the message", () =>
    Effect.gen(function* () {
      const { call } = yield* halted("bad", "bad again", "last")
      yield* call("POST", `${of}/held/0@0/skip?reason=INC-1204`)
      yield* call("POST", `${of}/held/0@0/skip?reason=twice`)
      yield* eventually(call("GET", `${of}/held`), ({ body }) => body.held[0]?.position === "0@1")
      yield* call("POST", `${of}/held/0@1/dead-letter?reason=INC-1205&topic=orders`)
      const { body, text } = yield* call("GET", "/eventbus/audit")
      assert.deepStrictEqual(
        body.entries.map(({ id: _, at: _at, host: _host, from: _from, repeats: _repeats, ...entry }: Entry) => entry),
        [
          {
            ...{ action: "deadLetterHeld", permissions: ["operate"], target: { position: "0@1", topic: "orders" } },
            ...{ by: "operator", binding: "default:orders", reason: "INC-1205", outcome: "done" }
          },
          {
            ...{ action: "skipHeld", permissions: ["discard"], target: { position: "0@0" }, reason: "twice" },
            ...{ by: "operator", binding: "default:orders", outcome: "refused", error: "RecordNotHeld" }
          },
          {
            ...{ action: "skipHeld", permissions: ["discard"], target: { position: "0@0" }, reason: "INC-1204" },
            ...{ by: "operator", binding: "default:orders", outcome: "done" }
          },
          {
            ...{ action: "held", permissions: ["view", "view-payload"] },
            ...{ by: "operator", binding: "default:orders", outcome: "done" }
          }
        ]
      )
      assert.notInclude(text, canary)
    })
  )

  it.live("the only candidate of a half-open circuit breaker is listed, and can be decided about", () =>
    Effect.gen(function* () {
      const handled: Array<string> = []
      const orders = Binding.make("orders", {
        ...{ topic: "orders", groupId: "billing", value: Serde.string },
        retry: RetryPolicy.blocking({ maxAttempts: 100, initialBackoff: "20 millis", maxBackoff: "20 millis" }),
        circuitBreaker: {
          ...{ slidingWindowSize: 1, minimumNumberOfCalls: 1, waitDurationInOpenState: "50 millis" },
          ...{ permittedNumberOfCallsInHalfOpenState: 2 }
        },
        onError: { Refused: Route.retry },
        handler: ({ value }) =>
          value === "bad" ? Effect.fail(new Refused()) : Effect.sync(() => void handled.push(value))
      })
      const { call, append } = yield* start({ bindings: [orders] })
      yield* append("orders", "bad")
      const { body } = yield* eventually(call("GET", `${of}/held`), (answer) => answer.body.held.length === 1)
      const [{ kind, position, decisions }] = body.held
      assert.deepStrictEqual([kind, decisions], ["candidate", ["skip", "dead-letter"]])
      assert.strictEqual((yield* call("POST", `${of}/held/${position}/skip?reason=broken`)).status, 200)
      yield* append("orders", "good")
      yield* untilHandled(handled, 1)
    })
  )

  it.live("callers on this machine may look while there is no authorizer, and decide nothing", () =>
    Effect.gen(function* () {
      const { context } = yield* halted("bad")
      const web = yield* Effect.provideContext(AdminWeb.make(), context)
      const local = { remoteAddress: "127.0.0.1", token: "", headers: { host: "localhost" } }
      const look = yield* callOf(web)("GET", `${of}/held`, local)
      assert.deepStrictEqual([look.status, look.body.held.length], [200, 1])
      assert.notInclude(look.text, canary)
      const skip = yield* callOf(web)("POST", `${of}/held/0@0/skip?reason=x`, local)
      assert.deepStrictEqual(shown(skip), [403, "ReadOnly"])
    })
  )
})
