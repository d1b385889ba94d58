/** OPS-25: the audit log tells who did what, to what, why, and with which outcome; and no entry has a payload or a secret. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { BrokerError } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Effect, Logger, Redacted } from "effect"
import { type Answer, binding, callOf, eventually, Refused, start } from "./api.ts"

const topic = "__eventbus.audit"
const canary = "canary-s3cr3t"
const token = `${canary}-token`

const authorizer = Authorizer.fromTokens([
  { token: Redacted.make(token), name: "ann", permissions: ["view", "view-payload", "operate", "replay", "admin"] },
  { token: Redacted.make("of-bob"), name: "bob", permissions: ["view"] },
  {
    token: Redacted.make("of-eve"),
    name: "eve",
    permissions: ["view"],
    bindings: ["default:payments"]
  }
])

/** A dead letter that is full of the canary, in a program whose log lines are kept. */
const started = Effect.fnUntraced(function* (audit: Parameters<typeof start>[0] = { audit: {} }) {
  const lines: Array<string> = []
  const logger = Logger.make((line) => void lines.push(JSON.stringify([line.message, String(line.cause)])))
  const program = yield* start({
    authorizer,
    bindings: [
      binding("orders", { handler: () => Effect.fail(Object.assign(new Refused(), { message: canary })) }),
      binding("payments", { topic: "payments" })
    ],
    ...audit
  })
  const web = yield* AdminWeb.make({ authorizer }).pipe(
    Effect.provideContext(program.context),
    Effect.provide(Logger.layer([logger]))
  )
  const ask = callOf(web)
  const call = (method: string, path: string, options: Parameters<typeof ask>[2] = {}) =>
    ask(method, `/eventbus${path}`, { token, ...options })
  yield* program.append("orders", `{"card":"${canary}"}`)
  yield* eventually(call("GET", "/bindings/orders/dlt/stats"), ({ body }) => body?.count === 1)
  const stored = Effect.map(program.memory.log(topic, 0), (records) =>
    records.map(({ key, value }) => ({ key: text(key), ...JSON.parse(text(value)) }))
  )
  return { ...program, call, lines, stored }
})

const text = (bytes: Uint8Array | null): string => new TextDecoder().decode(bytes ?? new Uint8Array())

/** The entries in short, the oldest first. */
const short = ({ body }: Answer) =>
  body.entries
    .map((entry: Record<string, unknown>) => [entry["by"], entry["action"], entry["outcome"], entry["error"] ?? ""])
    .toReversed()

const plan = { action: "replay", select: { all: true }, reason: "the bank is back" }

describe("OPS-25 the audit log", () => {
  it.live("tells of each change who did what, to what, why, from where, and how it ended", () =>
    Effect.gen(function* () {
      const { call } = yield* started()
      yield* call("POST", "/bindings/orders/pause?reason=INC-1&tier=1")
      yield* call("POST", "/bindings/orders/pause?reason=twice&tier=9", { headers: { "x-eventbus-client": "console" } })
      const made = yield* call("POST", "/bindings/orders/dlt/plans", {
        body: plan,
        headers: { "x-eventbus-client": "command-line" }
      })
      const { body } = yield* call("GET", "/audit")
      const entries = body.entries.map(({ id, at, host, ...entry }: Record<string, unknown>) => {
        assert.match(String(id), /^[\w-]{36}$/)
        assert.match(String(at), /^\d{4}-\d\d-\d\dT.*Z$/)
        assert.isString(host)
        return entry
      })
      assert.deepStrictEqual(entries, [
        {
          ...{
            by: "ann",
            from: "command-line",
            permissions: ["replay", "view-payload"],
            action: "makePlan",
            binding: "default:orders"
          },
          ...{ target: { action: "replay", all: true }, reason: "the bank is back", run: made.body.id },
          ...{ outcome: "done", repeats: 0 }
        },
        {
          ...{ by: "ann", from: "console", permissions: ["operate"], action: "pause", binding: "default:orders" },
          ...{ target: { tier: "9" }, reason: "twice", outcome: "refused", error: "UnknownTier", repeats: 0 }
        },
        {
          ...{ by: "ann", from: "http", permissions: ["operate"], action: "pause", binding: "default:orders" },
          ...{ target: { tier: "1" }, reason: "INC-1", outcome: "done", repeats: 0 }
        }
      ])
      assert.notProperty(body, "next")
    })
  )

  it.live("has the beginning of a change before the change, and one entry for both in its pages", () =>
    Effect.gen(function* () {
      const { call, stored } = yield* started()
      yield* call("POST", "/bindings/orders/stop?reason=INC-1")
      const [begun, ended] = yield* stored
      assert.deepStrictEqual([begun.outcome, ended.outcome, begun.reason], ["begun", "done", "INC-1"])
      assert.deepStrictEqual([begun.id, begun.key, begun.v, begun.minV], [ended.id, ended.key, 1, 1])
      assert.deepStrictEqual(short(yield* call("GET", "/audit")), [["ann", "stop", "done", ""]])
    })
  )

  it.live("tells that a repeat with an idempotency key did nothing", () =>
    Effect.gen(function* () {
      const { call } = yield* started()
      const pause = call("POST", "/bindings/orders/pause?reason=INC-1", { headers: { "idempotency-key": "pause-1" } })
      yield* pause
      yield* pause
      assert.deepStrictEqual(short(yield* call("GET", "/audit")), [
        ["ann", "pause", "done", ""],
        ["ann", "pause", "refused", "AnsweredAgain"]
      ])
    })
  )

  it.live("tells that a command was for all processes of the fleet, for which tier, and until when", () =>
    Effect.gen(function* () {
      const { call } = yield* started({ audit: {}, fleet: {} })
      const until = "2099-01-01T00:00:00.000Z"
      yield* call("POST", "/bindings/orders/pause", { body: { scope: "fleet", reason: "INC-2", tier: 1, until } })
      const { body } = yield* call("GET", "/audit")
      const [{ action, reason, outcome, target }] = body.entries
      assert.deepStrictEqual([action, reason, outcome], ["pause", "INC-2", "done"])
      assert.deepStrictEqual([target.scope, target.tier, new Date(target.until).toISOString()], ["fleet", 1, until])
    })
  )

  it.live("tells of refused attempts by name where the authorizer knows one, and counts those of strangers", () =>
    Effect.gen(function* () {
      const { call, stored } = yield* started()
      yield* call("POST", "/bindings/orders/pause", { token: "of-bob" })
      yield* call("GET", "/bindings/orders", { token: "of-eve" })
      for (let knock = 0; knock < 20; knock++) yield* call("POST", `/bindings/x${knock}/stop`, { token: "stolen" })
      assert.deepStrictEqual(short(yield* call("GET", "/audit")), [
        ["bob", "pause", "refused", "Forbidden"],
        [undefined, "get", "refused", "Forbidden"],
        [undefined, "stop", "refused", "Unauthorized"]
      ])
      for (const entry of yield* stored) assert.notInclude(JSON.stringify(entry), "stolen")
    })
  )

  it.live("tells of a payload that was shown, once a minute for one that is asked for again and again", () =>
    Effect.gen(function* () {
      const { call } = yield* started()
      for (let round = 0; round < 5; round++) yield* call("GET", "/bindings/orders/dlt/records/0@0")
      yield* call("GET", "/bindings/orders/dlt/records/0@0", { token: "of-bob" })
      yield* call("GET", "/bindings/orders")
      const page = yield* call("GET", "/audit")
      assert.deepStrictEqual(short(page), [["ann", "record", "done", ""]])
      assert.deepStrictEqual(page.body.entries[0].permissions, ["view", "view-payload"])
      assert.deepStrictEqual(page.body.entries[0].target, { position: "0@0" })
    })
  )

  it.live("is read in pages, by binding and by time, and only by those who may see the binding", () =>
    Effect.gen(function* () {
      const { call } = yield* started()
      for (const name of ["orders", "payments", "orders"]) yield* call("POST", `/bindings/${name}/pause?reason=x`)
      const first = yield* call("GET", "/audit?limit=2")
      assert.strictEqual(first.body.entries.length, 2)
      const second = yield* call("GET", `/audit?limit=2&before=${first.body.next}`)
      assert.deepStrictEqual(
        [...first.body.entries, ...second.body.entries].map(({ binding, outcome, error }) => [binding, outcome, error]),
        [
          ["default:orders", "refused", "InvalidContainerState"],
          ["default:payments", "done", undefined],
          ["default:orders", "done", undefined]
        ]
      )
      const ofOne = (query: string, as = token) => call("GET", `/audit?${query}`, { token: as })
      assert.strictEqual((yield* ofOne("binding=payments")).body.entries.length, 1)
      assert.strictEqual((yield* ofOne("binding=payments", "of-eve")).body.entries.length, 1)
      assert.strictEqual((yield* ofOne("binding=orders", "of-eve")).status, 403)
      assert.strictEqual((yield* ofOne("", "of-eve")).status, 403)
      assert.strictEqual((yield* ofOne("after=1h")).body.entries.length, 4)
      assert.strictEqual((yield* ofOne("after=2999-01-01")).body.entries.length, 0)
      for (const wrong of ["after=soon", "before=x", "limit=0", "text=x"])
        assert.strictEqual((yield* ofOne(wrong)).status, 400, wrong)
    })
  )

  it.live(
    "where it cannot be written: nothing is done and no payload is shown, unless the program says to proceed",
    () =>
      Effect.gen(function* () {
        const error = new BrokerError.AuthorizationFailed({ resource: "topic", name: topic, operation: "write" })
        for (const whenUnwritable of ["refuse", "proceed"] as const) {
          const { call, memory, connector, lines } = yield* started({ audit: { whenUnwritable } })
          yield* memory.addFault(FaultPlan.chance(1, { operation: "produce", topic }, { _tag: "Refuse", error }))
          const paused = yield* call("POST", "/bindings/payments/pause?reason=INC-1")
          const shown = yield* call("GET", "/bindings/orders/dlt/records/0@0")
          const { state } = yield* connector.snapshot("payments")
          const proceeds = whenUnwritable === "proceed"
          assert.deepStrictEqual([paused.status, shown.status], proceeds ? [200, 200] : [503, 503])
          assert.strictEqual(state, proceeds ? "PAUSED" : "RUNNING")
          assert.strictEqual(shown.text.includes(canary), proceeds)
          if (!proceeds) assert.strictEqual(paused.body._tag, "AuditUnavailable")
          assert.isTrue(
            lines.some((line) => line.includes("cannot be written") && line.includes("ann") && line.includes("INC-1"))
          )
          assert.strictEqual((yield* call("GET", "/bindings/orders", { token: "of-bob" })).status, 200)
        }
      })
  )

  it.live("a broker that says nothing holds up a change no longer than the timeout", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* started({ audit: { timeout: "300 millis" } })
      yield* memory.addFault(FaultPlan.chance(1, { operation: "produce", topic }, { _tag: "LoseRequest" }))
      const began = Date.now()
      const paused = yield* call("POST", "/bindings/payments/pause?reason=INC-1")
      assert.deepStrictEqual([paused.status, paused.body._tag], [503, "AuditUnavailable"])
      assert.isBelow(Date.now() - began, 5_000)
    })
  )

  it.live("no entry has a payload, a credential, a key, a header value, a searched text or an error's message", () =>
    Effect.gen(function* () {
      const { call, stored, lines } = yield* started()
      const select = { keys: [canary] }
      const asked: ReadonlyArray<readonly [string, string, object?]> = [
        ["GET", "/bindings/orders/dlt/records/0@0"],
        ["GET", `/bindings/orders/dlt/records?text=${canary}`],
        ["GET", "/bindings/orders/dlt/groups"],
        ["POST", "/bindings/orders/dlt/plans", { ...plan, select }],
        ["POST", "/bindings/orders/dlt/plans", { ...plan, [canary]: canary }],
        ["POST", "/bindings/orders/dlt/rehearsals", { select }],
        ["POST", "/bindings", { name: "x", password: canary }],
        ["DELETE", "/bindings/orders/dlt?olderThan=1d"]
      ]
      for (const [method, path, body] of asked)
        yield* call(method, path, { headers: { "x-eventbus-client": canary, "x-other": canary }, body })
      yield* call("POST", "/bindings/orders/pause", { token: `${canary}-wrong` })
      const entries = yield* stored
      assert.isAtLeast(entries.length, asked.length)
      for (const entry of entries) assert.notInclude(JSON.stringify(entry), canary)
      assert.isTrue(entries.some(({ target }) => target?.keyCount === 1))
      for (const line of lines.filter((each) => each.includes("udit"))) assert.notInclude(line, canary)
    })
  )

  it.live("without it nothing is written, and its route says how to have one", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* started({})
      yield* call("POST", "/bindings/orders/pause?reason=x")
      const { status, body } = yield* call("GET", "/audit")
      assert.deepStrictEqual([status, body._tag], [404, "AuditOff"])
      assert.strictEqual(yield* memory.partitionCount(topic), 0)
    })
  )
})
