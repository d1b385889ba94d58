/** OPS-07 to OPS-09 and OPS-16 over HTTP: plans, runs and receipts of dead letters, with permissions by what a plan does. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { Binding, LetterTransform, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Logger, Redacted } from "effect"
import { type Answer, callOf, eventually, Refused, start } from "./api.ts"

const shown = ({ status, body }: Answer) => [status, body._tag]
const dlt = "/eventbus/bindings/orders/dlt"
const none = "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20"
const canary = "canary-4111-of-anna"

type Call = ReturnType<typeof callOf>

/** A program with these values dead-lettered; `heal` lets the handler take what comes from then on. */
const withLetters = Effect.fnUntraced(function* (values: ReadonlyArray<string>) {
  let isBad = true
  const made = Binding.make("orders", {
    ...{ topic: "orders", groupId: "orders-group", value: Serde.string, retry: RetryPolicy.none },
    onError: { Refused: Route.deadLetter("refused") },
    handler: () => Effect.suspend(() => (isBad ? Effect.fail(new Refused()) : Effect.void)),
    transforms: {
      repair: ({ value }) => {
        const text = new TextDecoder().decode(value ?? new Uint8Array())
        return text.includes(canary)
          ? Effect.fail(new LetterTransform.Skip({ reason: `cannot repair ${text}` }))
          : Effect.succeed({ value: `repaired ${text}` })
      }
    }
  })
  const program = yield* start({ bindings: [made] })
  yield* program.append("orders", ...values)
  yield* eventually(program.call("GET", `${dlt}/stats`), ({ body }) => body.count === values.length)
  const log = Effect.map(program.memory.log("orders", 0), (records) =>
    records.map(({ value }) => new TextDecoder().decode(value ?? new Uint8Array()))
  )
  const heal = Effect.sync(() => {
    isBad = false
  })
  return { ...program, log, heal }
})

const everyLetter = { action: "replay", select: { all: true }, reason: "the gateway is back" }
const slow = { ...everyLetter, rate: 1, canary: 0 }

const planned = Effect.fnUntraced(function* (call: Call, body: object = everyLetter) {
  const made = yield* call("POST", `${dlt}/plans`, { body })
  assert.strictEqual(made.status, 201, made.text)
  return made.body
})

/** A run that has begun. */
const begun = Effect.fnUntraced(function* (call: Call, body?: object) {
  const { id } = yield* planned(call, body)
  const run = yield* call("POST", `${dlt}/plans/${id}/apply`)
  assert.strictEqual(run.status, 202, run.text)
  return run.body
})

const receiptWhen = (call: Call, id: string, holds: (receipt: Answer["body"]) => boolean) =>
  Effect.map(
    eventually(call("GET", `${dlt}/runs/${id}`), ({ body }) => holds(body)),
    ({ body }) => body
  )

describe("plans and runs over HTTP", () => {
  it.live("OPS-07 POST dlt/plans says what would happen and changes nothing; GET dlt/plans/{id} says the same", () =>
    Effect.gen(function* () {
      const { call, log } = yield* withLetters(["one", "two", "three"])
      const plan = yield* planned(call, {
        ...everyLetter,
        select: { all: true, except: ["0@1"] },
        canaryWait: "2 minutes"
      })
      assert.deepInclude(plan, {
        ...{ action: "replay", select: { all: true, except: ["0@1"] }, count: 2, sample: ["0@0", "0@2"] },
        ...{ targets: [{ name: "orders", count: 2 }], refused: 0, passedOver: 0, unreadable: 0 },
        ...{ rate: 50, canary: 20, canaryWaitMillis: 120_000, stopAbove: 5, ignoreMaxReplays: false },
        ...{ reason: "the gateway is back", by: "operator" }
      })
      assert.strictEqual(Date.parse(plan.expires) - Date.parse(plan.created), 900_000)
      assert.deepStrictEqual((yield* call("GET", `${dlt}/plans/${plan.id}`)).body, plan)
      assert.deepStrictEqual(yield* log, ["one", "two", "three"])
      assert.deepStrictEqual((yield* call("GET", `${dlt}/runs`)).body, { runs: [] })
    })
  )

  it.live("OPS-08 OPS-09 an applied plan is a run, whose receipt closes itself once no copy waits", () =>
    Effect.gen(function* () {
      const { call, heal, log } = yield* withLetters(["one", "two", "three"])
      yield* heal
      const run = yield* begun(call)
      assert.deepInclude(run, { action: "replay", count: 3, reason: "the gateway is back", by: "operator" })
      const receipt = yield* receiptWhen(call, run.id, ({ closed }) => closed)
      assert.deepInclude(receipt, {
        ...{ state: "done", count: 3, dealtWith: 3, refused: 0 },
        ...{ passed: 3, cameBack: 0, waiting: 0, elsewhere: 0, closed: true }
      })
      assert.deepStrictEqual(yield* log, ["one", "two", "three", "one", "two", "three"])
      const { runs } = (yield* call("GET", `${dlt}/runs`)).body
      assert.deepStrictEqual(
        runs.map(({ id, state }: Answer["body"]) => [id, state]),
        [[run.id, "done"]]
      )
    })
  )

  it.live("OPS-09 a copy that is dead-lettered again is one that came back", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(["one"])
      const { id } = yield* begun(call)
      assert.deepInclude(yield* receiptWhen(call, id, ({ closed }) => closed), { passed: 0, cameBack: 1, waiting: 0 })
    })
  )

  it.live("OPS-07 a plan whose letters were dealt with meanwhile is stale: 409, and nothing is done", () =>
    Effect.gen(function* () {
      const { call, heal, log } = yield* withLetters(["one", "two"])
      yield* heal
      const { id } = yield* planned(call)
      yield* call("POST", `${dlt}/replay?count=1`)
      const refused = yield* call("POST", `${dlt}/plans/${id}/apply`)
      assert.deepStrictEqual([...shown(refused), refused.body.id], [409, "PlanStale", id])
      assert.match(refused.body.changes[0], /takes 1 letters instead of 2/)
      assert.deepStrictEqual(yield* log, ["one", "two", "one"])
      assert.deepStrictEqual((yield* call("GET", `${dlt}/runs`)).body.runs, [])
    })
  )

  it.live("OPS-08 of two callers that apply one plan, one has its run and the other one learns by whom: 409", () =>
    Effect.gen(function* () {
      const { call, heal, log } = yield* withLetters(["one", "two"])
      yield* heal
      const { id } = yield* planned(call)
      const apply = call("POST", `${dlt}/plans/${id}/apply`)
      const answers = yield* Effect.all([apply, apply], { concurrency: 2 })
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [202, 409])
      const lost = answers.find(({ status }) => status === 409)!
      assert.deepStrictEqual([lost.body._tag, lost.body.pid], ["PlanApplied", process.pid])
      yield* receiptWhen(call, id, ({ closed }) => closed)
      assert.deepStrictEqual(shown(yield* apply), [409, "PlanApplied"])
      assert.deepStrictEqual(yield* log, ["one", "two", "one", "two"])
    })
  )

  it.live("OPS-08 a run is paused, resumed, made faster, and cancelled for good", () =>
    Effect.gen(function* () {
      const { call, heal, log } = yield* withLetters(["1", "2", "3", "4", "5", "6"])
      yield* heal
      const { id } = yield* begun(call, slow)
      const run = `${dlt}/runs/${id}`
      yield* receiptWhen(call, id, ({ dealtWith }) => dealtWith >= 1)
      const paused = yield* call("POST", `${run}/pause`, { body: { reason: "the shop is full" } })
      assert.deepStrictEqual([paused.status, paused.body.state], [200, "paused"])
      assert.strictEqual(paused.body.stateReason, "the shop is full")
      yield* Effect.sleep("1500 millis")
      const { dealtWith } = (yield* call("GET", run)).body
      assert.isBelow(dealtWith, 6)
      yield* Effect.sleep("1500 millis")
      assert.strictEqual((yield* call("GET", run)).body.dealtWith, dealtWith)
      const resumed = yield* call("POST", `${run}/resume`)
      assert.deepStrictEqual([resumed.status, resumed.body.state], [202, "running"])
      const faster = yield* call("POST", `${run}/rate`, { body: { rate: 2 } })
      assert.deepStrictEqual([faster.status, faster.body.rate], [200, 2])
      const cancelled = yield* call("POST", `${run}/cancel`, { body: { reason: "wrong letters" } })
      assert.deepStrictEqual([cancelled.status, cancelled.body.state], [200, "cancelled"])
      yield* receiptWhen(call, id, ({ closed }) => closed)
      for (const [verb, body] of [
        ["resume", undefined],
        ["pause", { reason: "x" }],
        ["cancel", { reason: "x" }],
        ["rate", { rate: 1 }]
      ] as const)
        assert.deepStrictEqual(shown(yield* call("POST", `${run}/${verb}`, { body })), [409, "RunOver"], verb)
      assert.isBelow((yield* log).length, 12)
    })
  )

  it.live("OPS-08 resume of a run that is running is 409 at once, and says which process works on it", () =>
    Effect.gen(function* () {
      const { call, heal } = yield* withLetters(["1", "2", "3", "4", "5", "6"])
      yield* heal
      const { id } = yield* begun(call, slow)
      const refused = yield* Effect.timeout(call("POST", `${dlt}/runs/${id}/resume`), "3 seconds")
      assert.deepStrictEqual([...shown(refused), refused.body.pid], [409, "RunAtWork", process.pid])
    })
  )

  it.live("OPS-08 a run that this process works on ends with the service, and is left to any other process", () =>
    Effect.gen(function* () {
      const { call, heal, log, close } = yield* withLetters(["1", "2", "3", "4", "5", "6"])
      yield* heal
      const { id } = yield* begun(call, slow)
      yield* receiptWhen(call, id, ({ dealtWith }) => dealtWith >= 1)
      yield* close
      const { length } = yield* log
      assert.isBelow(length, 12)
      yield* Effect.sleep("2500 millis")
      assert.strictEqual((yield* log).length, length)
    })
  )

  it.live("OPS-04 letters are given up by a plan, and brought back by another one", () =>
    Effect.gen(function* () {
      const { call, log } = yield* withLetters(["one", "two"])
      const count = Effect.map(call("GET", `${dlt}/stats`), ({ body }) => body.count)
      const gone = yield* begun(call, { action: "discard", select: { records: ["0@1"] }, reason: "a test order" })
      assert.deepInclude(yield* receiptWhen(call, gone.id, ({ closed }) => closed), { state: "done", dealtWith: 1 })
      assert.strictEqual(yield* count, 1)
      const back = yield* begun(call, { action: "restore", select: { all: true }, reason: "no test at all" })
      assert.deepInclude(yield* receiptWhen(call, back.id, ({ closed }) => closed), { state: "done", dealtWith: 1 })
      assert.strictEqual(yield* count, 2)
      assert.deepStrictEqual(yield* log, ["one", "two"])
    })
  )

  it.live("OPS-07 OPS-08 unknown plans, runs, tiers and transforms are refused with their errors", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(["one"])
      const post = (path: string, body?: object) => Effect.map(call("POST", `${dlt}/${path}`, { body }), shown)
      assert.deepStrictEqual(shown(yield* call("GET", `${dlt}/plans/${none}`)), [404, "UnknownPlan"])
      assert.deepStrictEqual(shown(yield* call("GET", `${dlt}/runs/${none}`)), [404, "UnknownRun"])
      assert.deepStrictEqual(yield* post(`plans/${none}/apply`), [404, "UnknownPlan"])
      assert.deepStrictEqual(yield* post(`runs/${none}/resume`), [404, "UnknownRun"])
      assert.deepStrictEqual(yield* post(`runs/${none}/pause`, { reason: "x" }), [404, "UnknownRun"])
      assert.deepStrictEqual(yield* post(`runs/${none}/rate`, { rate: 1 }), [404, "UnknownRun"])
      // A plan that nobody applied has no run.
      const { id } = yield* planned(call)
      assert.deepStrictEqual(yield* post(`runs/${id}/cancel`, { reason: "x" }), [404, "UnknownRun"])
      for (const path of ["plans/x", "runs/x"])
        assert.deepStrictEqual(shown(yield* call("GET", `${dlt}/${path}`)), [400, "InvalidArgument"], path)
      assert.deepStrictEqual(yield* post("plans", { ...everyLetter, action: "toTier", tier: 1 }), [400, "UnknownTier"])
      const transform = yield* call("POST", `${dlt}/plans`, { body: { ...everyLetter, transform: "no such" } })
      assert.deepStrictEqual([...shown(transform), transform.body.argument], [400, "InvalidArgument", "transform"])
      assert.deepStrictEqual(shown(yield* call("GET", "/eventbus/bindings/nobody/dlt/runs")), [404, "BindingNotFound"])
    })
  )

  it.live("ADM-12 a body is refused with every issue and its path", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const refused = (path: string, body: unknown) =>
        Effect.map(call("POST", `${dlt}/${path}`, { body }), (answer) => [
          ...shown(answer),
          ...answer.body.issues.map(({ path: at }: { readonly path: string }) => at).sort()
        ])
      const invalid = (...paths: ReadonlyArray<string>) => [400, "InvalidRequest", ...paths]
      assert.deepStrictEqual(yield* refused("plans", {}), invalid("action", "reason", "select"))
      assert.deepStrictEqual(yield* refused("plans", []), invalid(""))
      assert.deepStrictEqual(
        yield* refused("plans", { ...everyLetter, by: "eve", select: { goups: [], records: ["x"] }, tier: 1, rate: 0 }),
        invalid("by", "rate", "select.goups", "select.records[0]", "tier")
      )
      assert.deepStrictEqual(
        yield* refused("plans", { ...everyLetter, action: "discard", rate: 1, transform: "x" }),
        invalid("rate", "transform")
      )
      assert.deepStrictEqual(yield* refused(`runs/${none}/pause`, { reason: " ", by: "x" }), invalid("by", "reason"))
      assert.deepStrictEqual(yield* refused(`runs/${none}/cancel`, {}), invalid("reason"))
      assert.deepStrictEqual(yield* refused(`runs/${none}/rate`, { rate: 1.5 }), invalid("rate"))
      assert.deepStrictEqual(yield* refused(`runs/${none}/resume`, { rate: 1 }), invalid("rate"))
      assert.deepStrictEqual(yield* refused(`plans/${none}/apply`, { force: true }), invalid("force"))
    })
  )
})

describe("permissions for plans and runs", () => {
  const authorizer = Authorizer.fromTokens(
    (
      [
        ["viewer", ["view"]],
        ["auditor", ["view", "view-payload"]],
        ["operator", ["operate"]],
        ["replayer", ["replay"]],
        ["repairer", ["replay", "transform"]],
        ["discarder", ["discard"]]
      ] as const
    ).map(([name, permissions]) => ({ token: Redacted.make(name), name, permissions }))
  )
  /** The API of a program, with these callers, and the lines of its log. */
  const withCallers = Effect.fnUntraced(function* (values: ReadonlyArray<string>) {
    const program = yield* withLetters(values)
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    const web = yield* AdminWeb.make({ authorizer }).pipe(
      Effect.provideContext(program.context),
      Effect.provide(Logger.layer([logger]))
    )
    const as =
      (token: string): Call =>
      (method, path, options) =>
        callOf(web)(method, path, { ...options, token })
    return { ...program, as, lines }
  })

  const discarding = { action: "discard", select: { records: ["0@0"] }, reason: "a test order" }
  const repairing = { ...everyLetter, transform: "repair" }

  it.live("OPS-16 a plan needs the permission for what it does: replay, discard, and transform beside it", () =>
    Effect.gen(function* () {
      const { as } = yield* withCallers(["one", "two"])
      const plan = (token: string, body: object) => as(token)("POST", `${dlt}/plans`, { body })
      for (const [token, body, permission] of [
        ["viewer", everyLetter, "replay"],
        ["operator", everyLetter, "replay"],
        ["discarder", everyLetter, "replay"],
        ["replayer", discarding, "discard"],
        ["replayer", { ...discarding, action: "restore" }, "discard"],
        ["replayer", repairing, "transform"]
      ] as const) {
        const refused = yield* plan(token, body)
        assert.deepStrictEqual([...shown(refused), refused.body.permission], [403, "Forbidden", permission], token)
      }
      const replaying = yield* planned(as("replayer"))
      const repaired = yield* planned(as("repairer"), repairing)
      assert.strictEqual(replaying.by, "replayer")
      const given = yield* planned(as("discarder"), discarding)
      const apply = (token: string, id: string) => as(token)("POST", `${dlt}/plans/${id}/apply`)
      for (const [token, id, permission] of [
        ["viewer", replaying.id, "replay"],
        ["operator", replaying.id, "replay"],
        ["discarder", replaying.id, "replay"],
        ["replayer", given.id, "discard"],
        ["replayer", repaired.id, "transform"]
      ] as const) {
        const refused = yield* apply(token, id)
        assert.deepStrictEqual([...shown(refused), refused.body.permission], [403, "Forbidden", permission], token)
      }
      assert.deepStrictEqual((yield* as("viewer")("GET", `${dlt}/runs`)).body.runs, [])
      assert.strictEqual((yield* apply("discarder", given.id)).status, 202)
    })
  )

  it.live("OPS-16 operators of the binding pause and cancel runs, and neither resume them nor set their rate", () =>
    Effect.gen(function* () {
      const { as, lines, heal } = yield* withCallers(["1", "2", "3", "4", "5", "6"])
      yield* heal
      const { id } = yield* begun(as("replayer"), slow)
      const post = (token: string, verb: string, body?: object) =>
        as(token)("POST", `${dlt}/runs/${id}/${verb}`, { body })
      const why = { reason: "the shop is full" }
      for (const [token, verb, body, permission] of [
        ["viewer", "pause", why, "operate"],
        ["discarder", "pause", why, "operate"],
        ["discarder", "cancel", why, "operate"],
        ["operator", "resume", undefined, "replay"],
        ["operator", "rate", { rate: 1 }, "replay"],
        ["discarder", "rate", { rate: 1 }, "replay"]
      ] as const) {
        const refused = yield* post(token, verb, body)
        assert.deepStrictEqual([...shown(refused), refused.body.permission], [403, "Forbidden", permission], verb)
      }
      assert.deepStrictEqual((yield* post("operator", "pause", why)).body.state, "paused")
      assert.strictEqual((yield* post("replayer", "resume")).status, 202)
      assert.deepStrictEqual((yield* post("replayer", "cancel", why)).body.state, "cancelled")
      assert.include(lines, `Admin API: pauseRun '${id}' of binding 'default:orders' by operator: done`)
      assert.include(
        lines,
        `Admin API: setRunRate '${id}' of binding 'default:orders' by discarder: refused (Forbidden)`
      )
    })
  )

  it.live("OPS-16 no answer has a key or a reason that quotes a record without view-payload", () =>
    Effect.gen(function* () {
      const { as, heal } = yield* withCallers([canary, "fine"])
      yield* heal
      const keyed = yield* planned(as("replayer"), { ...everyLetter, select: { keys: [canary] } })
      const { id } = yield* begun(as("repairer"), repairing)
      yield* receiptWhen(as("viewer"), id, ({ state }) => state === "done")
      const paths = [`plans/${keyed.id}`, `plans/${id}`, "runs", `runs/${id}`]
      for (const path of paths) {
        const hidden = yield* as("viewer")("GET", `${dlt}/${path}`)
        assert.strictEqual(hidden.status, 200, path)
        assert.notInclude(hidden.text, canary, path)
      }
      const shownTo = (path: string) => Effect.map(as("auditor")("GET", `${dlt}/${path}`), ({ body }) => body)
      assert.deepStrictEqual((yield* shownTo(`plans/${keyed.id}`)).select, { keys: [canary], keyCount: 1 })
      const receipt = yield* shownTo(`runs/${id}`)
      assert.deepStrictEqual([receipt.dealtWith, receipt.refused], [1, 1])
      assert.include(receipt.refusals[0].name, `cannot repair ${canary}`)
    })
  )
})
