/** OPS-12: dead events over HTTP, by the words of dead letters. The outbox is one on a database in memory. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer, type OutboxPort } from "@eventbus/admin"
import { Deferred, Effect, Logger, Redacted } from "effect"
import { type Answer, callOf, eventually, start } from "./api.ts"
import * as OutboxOf from "./outboxOf.ts"

const dead = "/eventbus/outbox/dead"
const canary = "card-of-anna"

const shown = ({ status, body }: Answer) => [status, body._tag]

/** A program whose outbox has three dead events of two groups. */
const program = Effect.fnUntraced(function* (options: Parameters<typeof start>[0] = {}) {
  const made = yield* OutboxOf.make
  const { die } = made
  yield* die({ eventId: "e-0", error: `Refused: ${canary} is closed`, payload: { card: canary }, headers: { canary } })
  yield* die({ eventId: "e-1", error: `Refused: ${canary} is closed`, aggregateId: canary, tenantId: canary })
  yield* die({ eventId: "e-2", eventType: "Paid", error: canary, payloadBytes: new Uint8Array([255]) })
  return { ...made, ...(yield* start({ outbox: made.outbox, ...options })) }
})

const all = { action: "replay", select: { all: true }, reason: "INC-1204" }

const tokenOf = (name: string, permissions: ReadonlyArray<Authorizer.Permission>) => ({
  ...{ name, permissions, token: Redacted.make(name) }
})

describe("OPS-12 dead events over HTTP", () => {
  it.live("groups, list and show: page by page, in full for callers who may see payloads", () =>
    Effect.gen(function* () {
      const { call } = yield* program()
      const groups = yield* call("GET", `${dead}/groups`)
      assert.strictEqual(groups.status, 200)
      const [placed, paid] = groups.body.groups
      assert.deepInclude(placed, { eventType: "Placed", errorClass: "Refused", count: 2, samples: ["e-0", "e-1"] })
      assert.deepInclude(paid, { eventType: "Paid", errorClass: canary, count: 1 })
      assert.match(placed.first, /^\d{4}-.*Z$/)

      const first = yield* call("GET", `${dead}/events?group=${placed.fingerprint}&limit=1`)
      assert.deepStrictEqual(
        first.body.events.map(({ eventId }: { readonly eventId: string }) => eventId),
        ["e-0"]
      )
      const second = yield* call("GET", `${dead}/events?group=${placed.fingerprint}&limit=1&next=${first.body.next}`)
      assert.deepStrictEqual([second.body.events[0].eventId, second.body.next], ["e-1", undefined])
      assert.deepInclude(second.body.events[0], {
        ...{ aggregateType: "order", aggregateId: canary, tenantId: canary, attempts: 0, group: placed.fingerprint },
        ...{ errorClass: "Refused", lastError: `Refused: ${canary} is closed` }
      })
      const ofAggregate = yield* call(
        "GET",
        `${dead}/events?aggregateId=${canary}&eventType=Placed&aggregateType=order`
      )
      assert.deepStrictEqual(ofAggregate.body.events.length, 1)

      const { body } = yield* call("GET", `${dead}/events/e-0`)
      assert.deepInclude(body, { eventId: "e-0", contentType: "application/json", decodable: true })
      assert.deepStrictEqual(body.payload.value.decoded, { card: canary })
      assert.deepStrictEqual(body.payload.headers, [{ name: "canary", value: canary }])
      assert.deepStrictEqual(body.payload.key, { bytes: 3, text: "o-1", decoded: "o-1" })
      assert.deepStrictEqual(body.payload.causes, [{ exceptionClass: "Refused", message: `${canary} is closed` }])
      const bytes = yield* call("GET", `${dead}/events/e-2`)
      assert.deepStrictEqual(bytes.body.payload.value, { bytes: 1, base64: "/w==" })
    })
  )

  it.live("plan, apply, receipt: exactly the frozen events are replayed, and the receipt has their fate", () =>
    Effect.gen(function* () {
      const { call, die, store } = yield* program({ audit: {} })
      const plan = yield* call("POST", `${dead}/plans`, { body: { ...all, select: { eventType: "Placed" }, rate: 7 } })
      assert.strictEqual(plan.status, 201)
      const { id } = plan.body
      assert.deepInclude(plan.body, {
        ...{ action: "replay", reason: "INC-1204", by: "operator", count: 2, further: 0, rate: 7, canary: 20 },
        ...{ sample: ["e-0", "e-1"], select: { eventType: "Placed" } }
      })
      assert.deepStrictEqual((yield* call("GET", `${dead}/plans/${id}`)).body, plan.body)
      const receipt = call("GET", `${dead}/runs/${id}`)
      assert.deepInclude((yield* receipt).body, { state: "planned", untouched: 2, closed: false })

      yield* die({ eventId: "late" })
      const applied = yield* call("POST", `${dead}/plans/${id}/apply`)
      assert.strictEqual(applied.status, 202)
      assert.deepInclude(applied.body, { id, action: "replay", by: "operator", count: 2, closed: false })
      const done = yield* eventually(receipt, ({ body }) => body.state === "done")
      assert.deepInclude(done.body, { state: "done", dealtWith: 2, waiting: 2, untouched: 0, closed: false })
      assert.deepStrictEqual(shown(yield* call("POST", `${dead}/plans/${id}/apply`)), [409, "DeadEventPlanApplied"])
      yield* store.markDone(["e-0"])
      yield* store.markDead("e-1", "Refused: again")
      assert.deepInclude((yield* receipt).body, { delivered: 1, deadAgain: 1, waiting: 0, closed: true })
      const left = yield* call("GET", `${dead}/events`)
      assert.sameMembers(
        left.body.events.map(({ eventId }: { readonly eventId: string }) => eventId),
        ["e-1", "e-2", "late"]
      )

      const { body } = yield* call("GET", "/eventbus/audit")
      const [again, apply, made] = body.entries.filter(({ action }: { readonly action: string }) =>
        ["outboxPlan", "outboxApply"].includes(action)
      )
      assert.deepInclude(made, {
        by: "operator",
        permissions: ["replay", "view-payload"],
        reason: "INC-1204",
        run: id,
        outcome: "done"
      })
      assert.deepStrictEqual(made.target, { action: "replay", eventType: "Placed", rate: 7, canary: 20, stopAbove: 5 })
      assert.deepInclude(apply, { action: "outboxApply", permissions: ["replay"], run: id, outcome: "done" })
      assert.deepInclude(again, { outcome: "refused", error: "DeadEventPlanApplied" })
    })
  )

  it.live("one event is replayed, or deleted for good, with a reason; the next caller finds no dead event", () =>
    Effect.gen(function* () {
      const { call } = yield* program({ audit: {} })
      const replayed = yield* call("POST", `${dead}/events/e-0/replay?reason=INC-1204`)
      assert.deepStrictEqual([replayed.status, replayed.body], [200, { eventId: "e-0", action: "replay" }])
      const discarded = yield* call("POST", `${dead}/events/e-1/discard?reason=a+test`)
      assert.deepStrictEqual([discarded.status, discarded.body], [200, { eventId: "e-1", action: "discard" }])
      for (const path of ["e-0/replay?reason=x", "e-0/discard?reason=x", "e-1/discard?reason=x"])
        assert.deepStrictEqual(shown(yield* call("POST", `${dead}/events/${path}`)), [404, "DeadEventNotFound"], path)
      const { body } = yield* call("GET", "/eventbus/audit")
      const entries = body.entries.slice(-2)
      assert.deepInclude(entries[0], { action: "outboxDiscard", permissions: ["discard"], reason: "a test" })
      assert.deepInclude(entries[1], { action: "outboxReplay", permissions: ["replay"], reason: "INC-1204" })
      assert.deepStrictEqual([entries[0].target, entries[1].target], [{ event: "e-1" }, { event: "e-0" }])
    })
  )

  it.live("an id that nobody knows is 404, and a plan one of whose events has changed is 409", () =>
    Effect.gen(function* () {
      const { call } = yield* program()
      assert.deepStrictEqual(shown(yield* call("GET", `${dead}/events/none`)), [404, "DeadEventNotFound"])
      assert.deepStrictEqual(shown(yield* call("GET", `${dead}/plans/none`)), [404, "DeadEventPlanNotFound"])
      assert.deepStrictEqual(shown(yield* call("GET", `${dead}/runs/none`)), [404, "DeadEventPlanNotFound"])
      assert.deepStrictEqual(shown(yield* call("POST", `${dead}/plans/none/apply`)), [404, "DeadEventPlanNotFound"])
      const cancel = yield* call("POST", `${dead}/runs/none/cancel`, { body: { reason: "x" } })
      assert.deepStrictEqual(shown(cancel), [404, "DeadEventPlanNotFound"])
      const { body } = yield* call("POST", `${dead}/plans`, { body: all })
      const early = yield* call("POST", `${dead}/runs/${body.id}/cancel`, { body: { reason: "x" } })
      assert.deepStrictEqual([...shown(early), early.body.state], [409, "DeadEventPlanNotRunning", "planned"])
      yield* call("POST", `${dead}/events/e-0/discard?reason=x`)
      const stale = yield* call("POST", `${dead}/plans/${body.id}/apply`)
      assert.deepStrictEqual([...shown(stale), stale.body.changed], [409, "DeadEventPlanStale", 1])
      // Nothing was done, so nobody has applied it.
      assert.strictEqual((yield* call("GET", `${dead}/runs/${body.id}`)).body.state, "planned")
    })
  )

  it.live("somebody ends the work on a plan: what is replayed stays so, and the rest is untouched", () =>
    Effect.gen(function* () {
      const { call } = yield* program()
      const body = { ...all, canary: 1, canaryWait: "1 hour" }
      const { id } = (yield* call("POST", `${dead}/plans`, { body })).body
      yield* call("POST", `${dead}/plans/${id}/apply`)
      const receipt = call("GET", `${dead}/runs/${id}`)
      yield* eventually(receipt, (answer) => answer.body.waiting === 1)
      assert.deepInclude((yield* receipt).body, { state: "running", waiting: 1, untouched: 2, closed: false })
      const ended = yield* call("POST", `${dead}/runs/${id}/cancel`, { body: { reason: "wrong events" } })
      assert.strictEqual(ended.status, 200)
      assert.deepInclude(ended.body, { state: "cancelled", stateReason: "wrong events", waiting: 1, untouched: 2 })
      const again = yield* call("POST", `${dead}/runs/${id}/cancel`, { body: { reason: "x" } })
      assert.deepStrictEqual(shown(again), [409, "DeadEventPlanNotRunning"])
    })
  )

  it.live("a program without an outbox says so on every route, and nothing is done", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      assert.deepStrictEqual(shown(yield* call("GET", "/eventbus/outbox/permissions")), [404, "OutboxOff"])
      const routes = [
        ["GET", "/groups"],
        ["GET", "/events"],
        ["GET", "/events/e-0"],
        ["POST", "/events/e-0/replay?reason=x"],
        ["POST", "/events/e-0/discard?reason=x"],
        ["POST", "/plans", all],
        ["GET", "/plans/x"],
        ["POST", "/plans/x/apply"],
        ["GET", "/runs/x"],
        ["POST", "/runs/x/cancel", { reason: "x" }]
      ] as const
      for (const [method, path, body] of routes) {
        const answer = yield* call(method, `${dead}${path}`, { body })
        assert.deepStrictEqual(shown(answer), [404, "OutboxOff"], path)
        assert.match(answer.body.message, /This program has no outbox/)
      }
    })
  )

  it.live("a database that refuses is 502 on every route, and no answer quotes its error", () =>
    Effect.gen(function* () {
      const fails = Effect.fail({ _tag: "OutboxStoreError", operation: "read dead events", message: canary } as const)
      const outbox: OutboxPort.OutboxPort["Service"] = {
        ...{ groups: fails, list: () => fails, show: () => fails, plan: () => fails, apply: () => fails },
        ...{ receipt: () => fails, replay: () => fails }
      }
      const { call } = yield* start({ outbox })
      for (const path of ["/groups", "/events", "/events/e-0"]) {
        const answer = yield* call("GET", `${dead}${path}`)
        assert.deepStrictEqual(shown(answer), [502, "OutboxFailed"], path)
        assert.notInclude(answer.text, canary)
      }
      for (const path of ["/events/e-0/replay?reason=x", "/events/e-0/discard?reason=x", "/plans"]) {
        const answer = yield* call("POST", `${dead}${path}`, path === "/plans" ? { body: all } : {})
        assert.deepStrictEqual(shown(answer), [502, "OutboxFailed"], path)
      }
    })
  )

  it.live("a receipt that was read while the work ended is not closed", () =>
    Effect.gen(function* () {
      const made = yield* OutboxOf.make
      yield* made.die({ eventId: "e-0" })
      const finish = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const outbox: OutboxPort.OutboxPort["Service"] = {
        ...made.outbox,
        apply: (plan, options) =>
          Effect.gen(function* () {
            yield* Deferred.succeed(options.begun, undefined)
            yield* Deferred.await(finish)
            return yield* made.outbox.apply(plan, options)
          }).pipe(Effect.ensuring(Deferred.succeed(ended, undefined))),
        receipt: (plan) =>
          Effect.gen(function* () {
            const receipt = yield* made.outbox.receipt(plan)
            yield* Deferred.succeed(finish, undefined)
            yield* Deferred.await(ended)
            yield* Effect.sleep("10 millis")
            return { ...receipt, closed: true }
          })
      }
      const { call } = yield* start({ outbox })
      const { id } = (yield* call("POST", `${dead}/plans`, { body: { ...all, action: "discard" } })).body
      const applied = yield* call("POST", `${dead}/plans/${id}/apply`)
      assert.deepInclude(applied.body, { state: "running", untouched: 1, closed: false })
      assert.deepInclude((yield* call("GET", `${dead}/runs/${id}`)).body, { state: "done", gone: 1, closed: true })
    })
  )

  it.live("a database that fails on the way ends the work as failed, and the receipt tells what was done", () =>
    Effect.gen(function* () {
      const made = yield* OutboxOf.make
      yield* made.die({ eventId: "e-0" })
      const failed = { _tag: "OutboxStoreError", operation: "replay dead event" } as const
      const outbox: OutboxPort.OutboxPort["Service"] = {
        ...made.outbox,
        apply: (plan, options) => Effect.andThen(made.outbox.apply(plan, options), Effect.fail(failed))
      }
      const { call } = yield* start({ outbox })
      const { id } = (yield* call("POST", `${dead}/plans`, { body: all })).body
      assert.strictEqual((yield* call("POST", `${dead}/plans/${id}/apply`)).status, 202)
      const { body } = yield* eventually(call("GET", `${dead}/runs/${id}`), (answer) => answer.body.state === "failed")
      assert.deepInclude(body, { waiting: 1, untouched: 0, closed: false })
      assert.match(body.stateReason, /the log of the process says why/)
    })
  )
})

describe("OPS-12 OPS-16 permissions on dead events", () => {
  const authorizer = Authorizer.fromTokens([
    tokenOf("looker", ["view"]),
    tokenOf("replayer", ["view", "replay"]),
    tokenOf("discarder", ["view", "discard"]),
    { ...tokenOf("of-orders", ["view", "replay", "discard"]), bindings: ["default:orders"] }
  ])

  it.live("without view-payload nothing quotes an event, and nobody finds out by asking for an aggregate", () =>
    Effect.gen(function* () {
      const { call, admin } = yield* program({ authorizer })
      const token = "replayer"
      const plan = yield* call("POST", `${dead}/plans`, {
        ...{ token, body: { ...all, select: { aggregateId: canary } } }
      })
      assert.deepStrictEqual([plan.status, plan.body.count, plan.body.select], [201, 1, {}])
      const paths = ["groups", "events", "events/e-0", "events/e-1", "events/e-2", `plans/${plan.body.id}`]
      for (const path of [...paths, `runs/${plan.body.id}`]) {
        const answer = yield* call("GET", `${dead}/${path}`, { token })
        assert.strictEqual(answer.status, 200, path)
        assert.notInclude(answer.text, canary, path)
      }
      const asked = yield* call("GET", `${dead}/events?aggregateId=o-1`, { token })
      assert.deepStrictEqual([...shown(asked), asked.body.permission], [403, "Forbidden", "view-payload"])
      assert.strictEqual((yield* admin.outbox.show("e-0")).payload, undefined)
    })
  )

  it.live("a plan needs the permission for its action, and a token for bindings opens nothing", () =>
    Effect.gen(function* () {
      const { call } = yield* program({ authorizer, audit: {} })
      const plan = (token: string, action: string) => call("POST", `${dead}/plans`, { token, body: { ...all, action } })
      const missing = ({ status, body }: Answer) => [status, body.permission]
      const granted = yield* call("GET", "/eventbus/outbox/permissions", { token: "replayer" })
      assert.deepStrictEqual(granted.body, { caller: "replayer", permissions: ["view", "replay"] })
      assert.deepStrictEqual(missing(yield* plan("looker", "replay")), [403, "replay"])
      assert.deepStrictEqual(missing(yield* plan("replayer", "discard")), [403, "discard"])
      assert.deepStrictEqual(missing(yield* plan("discarder", "replay")), [403, "replay"])
      for (const path of ["/groups", "/events", "/events/e-0"])
        assert.deepStrictEqual(missing(yield* call("GET", `${dead}${path}`, { token: "of-orders" })), [403, "view"])
      const made = yield* plan("discarder", "discard")
      assert.strictEqual(made.status, 201)
      const applied = (token: string) => call("POST", `${dead}/plans/${made.body.id}/apply`, { token })
      assert.deepStrictEqual(missing(yield* applied("replayer")), [403, "discard"])
      const replayed = yield* call("POST", `${dead}/events/e-0/replay?reason=x`, { token: "discarder" })
      assert.deepStrictEqual(missing(replayed), [403, "replay"])
      const one = yield* call("POST", `${dead}/events/e-0/discard?reason=x`, { token: "replayer" })
      assert.deepStrictEqual(missing(one), [403, "discard"])
      assert.strictEqual((yield* applied("discarder")).status, 202)
      const receipt = call("GET", `${dead}/runs/${made.body.id}`, { token: "looker" })
      assert.deepInclude((yield* eventually(receipt, ({ body }) => body.state === "done")).body, {
        gone: 3,
        closed: true
      })
      const entries = (yield* call("GET", "/eventbus/audit", { token: "looker" })).body.entries
      const refused = entries.find(
        ({ by, action, error }: Record<string, string>) =>
          by === "replayer" && action === "outboxPlan" && error === "Forbidden"
      )
      assert.deepStrictEqual([refused.reason, refused.target], ["INC-1204", { action: "discard" }])
    })
  )

  it.live("OPS-25 each look at a payload is audited, and so is a line of the log; other looks are not", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      const { call, context } = yield* program({ audit: {} })
      const web = yield* AdminWeb.make({ authorizer }).pipe(
        Effect.provideContext(context),
        Effect.provide(Logger.layer([logger]))
      )
      yield* callOf(web)("GET", `${dead}/events/e-0`, { token: "looker" })
      yield* callOf(web)("POST", `${dead}/events/e-2/replay?reason=INC-7`, { token: "replayer" })
      yield* call("GET", `${dead}/events/e-1`)
      const { body, text } = yield* call("GET", "/eventbus/audit")
      const [view] = body.entries
      assert.deepInclude(view, { by: "operator", action: "outboxShow", permissions: ["view", "view-payload"] })
      assert.deepStrictEqual([view.target, body.entries.length], [{ event: "e-1" }, 2])
      assert.notInclude(text, canary)
      assert.deepStrictEqual(
        lines.filter((line) => line.startsWith("Admin")),
        ["Admin API: outboxReplay 'e-2' by replayer: done, because: INC-7"]
      )
    })
  )

  it.live("the program's mask decides about payload, texts of errors and aggregates", () =>
    Effect.gen(function* () {
      const topics: Array<string> = []
      const { call } = yield* program({
        mask: ({ topic }) => {
          topics.push(topic)
          return { key: "k", value: { card: "****" }, headers: [] }
        },
        maskText: (text) => text.replaceAll(canary, "****")
      })
      const { body, text } = yield* call("GET", `${dead}/events/e-0`)
      assert.deepStrictEqual([body.payload.mask, body.payload.value.decoded], ["applied", { card: "****" }])
      assert.strictEqual(body.lastError, "Refused: **** is closed")
      assert.notInclude(text, canary)
      assert.deepStrictEqual(topics, ["Placed"])
      const listed = yield* call("GET", `${dead}/events`)
      assert.strictEqual(listed.body.events[1].aggregateId, "****")
      for (const path of ["groups", "events", "events/e-1", "events/e-2"])
        assert.notInclude((yield* call("GET", `${dead}/${path}`)).text, canary, path)
      const failing = yield* program({ mask: () => 7 as never })
      const failed = yield* failing.call("GET", `${dead}/events/e-0`)
      assert.deepStrictEqual([failed.body.payload.mask, failed.body.payload.headers], ["failed", []])
      assert.notInclude(failed.text, canary)
    })
  )
})

describe("OPS-12 OPS-18 requests about dead events", () => {
  it.live("a body that no plan takes is 400 with every path at once, and nothing is kept", () =>
    Effect.gen(function* () {
      const { call } = yield* program()
      const body = {
        action: "replay",
        select: { all: true, eventType: "x" },
        reason: " ",
        rate: 0,
        cannary: 1,
        by: "me"
      }
      const answer = yield* call("POST", `${dead}/plans`, { body })
      assert.deepStrictEqual(shown(answer), [400, "InvalidRequest"])
      assert.sameMembers(
        answer.body.issues.map(({ path }: { readonly path: string }) => path),
        ["select.all", "reason", "rate", "cannary", "by"]
      )
      const long = yield* call("POST", `${dead}/plans`, {
        body: { ...all, select: { groups: { a: "x".repeat(999) } } }
      })
      assert.match(long.body.issues[0].found, /^a value of \d+ characters$/)
      const without = yield* call("POST", `${dead}/events/e-0/replay`)
      assert.deepStrictEqual([without.status, without.body.issues[0].path], [400, "reason"])
      const discard = yield* call("POST", `${dead}/plans`, { body: { ...all, action: "discard", rate: 5 } })
      assert.deepStrictEqual(
        [discard.status, discard.body.issues],
        [400, [{ path: "rate", found: "5", allowed: "nothing: only replay has it" }]]
      )
    })
  )

  it.live("a key does the work once: its repeats get the first answer, and another event needs another key", () =>
    Effect.gen(function* () {
      const { call, die, store } = yield* program()
      const headers = { "idempotency-key": "INC-1204" }
      const replay = (eventId: string) => call("POST", `${dead}/events/${eventId}/replay?reason=x`, { headers })
      const first = yield* replay("e-0")
      assert.deepStrictEqual([first.status, first.headers.get("idempotency-kept")], [200, "process"])
      yield* store.markDead("e-0", "again")
      const again = yield* replay("e-0")
      assert.deepStrictEqual([again.body, again.headers.get("idempotency-replayed")], [first.body, "true"])
      assert.strictEqual((yield* call("GET", `${dead}/events/e-0`)).status, 200)
      assert.deepStrictEqual(shown(yield* replay("e-1")), [422, "IdempotencyKeyReused"])
      yield* die({ eventId: "e 3" })
      const spaced = yield* call("POST", `${dead}/events/e%203/discard?reason=x`)
      assert.deepStrictEqual(spaced.body, { eventId: "e 3", action: "discard" })
    })
  )
})
