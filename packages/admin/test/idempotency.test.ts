/** OPS-18: a POST with an `Idempotency-Key` is done once, and its repeats get the first answer, in whichever process of the group. */
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb, Authorizer } from "@eventbus/admin"
import { Binding, BrokerError, RetryPolicy, Route, Serde } from "@eventbus/core"
import { FaultPlan, type MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import { type Answer, type CallOptions, callOf, eventually, handlers, Refused, start, token } from "./api.ts"

const orders = "/eventbus/bindings/orders"
const next = `${orders}/dlt/replay?count=1`
const everyLetter = { action: "replay", select: { all: true }, reason: "the gateway is back" }
const shown = ({ status, body }: Answer) => [status, body._tag]
const isAgain = ({ headers }: Answer) => headers.get("idempotency-replayed") === "true"
const keptBy = ({ headers }: Answer) => headers.get("idempotency-kept")
const keyed = (key: string, options: CallOptions = {}): CallOptions => ({
  ...options,
  headers: { ...options.headers, "idempotency-key": key }
})

type Memory = MemoryBroker.MemoryBroker["Service"]

/** A process of the group whose handler fails for every record that it gets, and one more binding, without dead letters. */
const processOf = (memory?: Memory) =>
  start({
    handlers,
    bindings: ["orders", "payments"].map((topic) =>
      Binding.make(topic, {
        ...{ topic, groupId: `${topic}-group`, value: Serde.string, retry: RetryPolicy.none },
        onError: { Refused: Route.deadLetter("refused") },
        handler: () => Effect.fail(new Refused())
      })
    ),
    ...(memory === undefined ? {} : { memory })
  })

const copiesIn = (memory: Memory) => Effect.map(memory.log("orders", 0), ({ length }) => length)

/** A process with three dead letters, whose handler is stopped, so that copies stay where they are. */
const withLetters = Effect.fnUntraced(function* () {
  const program = yield* processOf()
  yield* program.append("orders", "one", "two", "three")
  yield* eventually(program.call("GET", `${orders}/dlt/stats`), ({ body }) => body.count === 3)
  yield* program.call("POST", `${orders}/stop`)
  const copies = Effect.map(copiesIn(program.memory), (length) => length - 3)
  return { ...program, copies }
})

/** A process whose handler does not end before `open`. */
const withSlowHandler = Effect.fnUntraced(function* () {
  const open = yield* Deferred.make<void>()
  const began = yield* Deferred.make<void>()
  const slow = Binding.make("orders", {
    ...{ topic: "orders", groupId: "orders-group", value: Serde.string },
    handler: () => Effect.andThen(Deferred.succeed(began, undefined), Deferred.await(open))
  })
  const program = yield* start({ bindings: [slow] })
  yield* program.append("orders", "one")
  yield* Deferred.await(began)
  return { ...program, open }
})

/** Nobody may write to the journal any more. */
const noJournal = FaultPlan.chance(
  1,
  { operation: "produce", topic: "orders.DLT.replays" },
  {
    _tag: "Refuse",
    error: new BrokerError.AuthorizationFailed({ resource: "topic", name: "orders.DLT.replays", operation: "write" })
  }
)

describe("OPS-18 Idempotency-Key", () => {
  it.live("the same key and request gets the first answer again, and the work is done once", () =>
    Effect.gen(function* () {
      const { call, copies } = yield* withLetters()
      const first = yield* call("POST", next, keyed("k-1"))
      assert.deepStrictEqual([first.status, first.body.replayed, keptBy(first)], [200, 1, "cluster"])
      const second = yield* call("POST", next, keyed("k-1"))
      assert.deepStrictEqual([second.status, second.text, isAgain(second)], [200, first.text, true])
      assert.strictEqual(second.headers.get("content-type"), first.headers.get("content-type"))
      assert.strictEqual(yield* copies, 1)
      assert.isFalse(isAgain(yield* call("POST", next, keyed("k-2"))))
      assert.strictEqual(yield* copies, 2)
      yield* call("POST", next)
      assert.strictEqual(yield* copies, 3)
    })
  )

  it.live("another process of the group, and the same one after a restart, give the first answer", () =>
    Effect.gen(function* () {
      const { call, close, copies, memory } = yield* withLetters()
      const plan = yield* call("POST", `${orders}/dlt/plans`, keyed("plan", { body: everyLetter }))
      const first = yield* call("POST", next, keyed("k-1"))
      const other = yield* processOf(memory)
      yield* other.call("POST", `${orders}/stop`)
      const elsewhere = yield* other.call("POST", next, keyed("k-1"))
      assert.deepStrictEqual([elsewhere.status, elsewhere.text, isAgain(elsewhere)], [200, first.text, true])
      yield* close
      const restarted = yield* processOf(memory)
      yield* restarted.call("POST", `${orders}/stop`)
      const later = yield* restarted.call("POST", `${orders}/dlt/plans`, keyed("plan", { body: everyLetter }))
      assert.deepStrictEqual([later.status, later.text, isAgain(later)], [201, plan.text, true])
      assert.strictEqual(yield* copies, 1)
    })
  )

  it.live("the same key with another body, parameter, route or binding is 422, in every process; nothing is done", () =>
    Effect.gen(function* () {
      const { call, copies, memory } = yield* withLetters()
      yield* call("POST", `${orders}/dlt/plans`, keyed("k-1", { body: everyLetter }))
      const other = yield* processOf(memory)
      const requests = [
        [`${orders}/dlt/plans`, { body: { ...everyLetter, reason: "another one" } }],
        [`${orders}/dlt/rehearsals`, { body: everyLetter }],
        [next, {}],
        [`${orders}/dlt/replay?count=2`, {}]
      ] as const
      for (const ask of [call, other.call]) {
        for (const [path, options] of requests) {
          assert.deepStrictEqual(shown(yield* ask("POST", path, keyed("k-1", options))), [422, "IdempotencyKeyReused"])
        }
      }
      // Another binding has another journal: the process itself remembers.
      assert.strictEqual((yield* call("POST", "/eventbus/bindings/payments/pause", keyed("k-1"))).status, 422)
      assert.strictEqual((yield* call("GET", "/eventbus/bindings/payments")).body.state, "RUNNING")
      assert.strictEqual(yield* copies, 0)
      // Every spelling of the binding's name is the same request.
      const spelled = yield* call(
        "POST",
        "/eventbus/bindings/default:orders/dlt/plans",
        keyed("k-1", { body: everyLetter })
      )
      assert.deepStrictEqual([spelled.status, isAgain(spelled)], [201, true])
    })
  )

  it.live("of requests with one key at once, one does the work; the others wait for its answer", () =>
    Effect.gen(function* () {
      const { call, copies } = yield* withLetters()
      const answers = yield* Effect.all(
        Array.from({ length: 5 }, () => call("POST", next, keyed("k-1"))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1)
      assert.deepStrictEqual(answers.map(isAgain).sort(), [false, true, true, true, true])
      assert.strictEqual(yield* copies, 1)
    })
  )

  it.live("of two processes that get one key at once, one does the work; the other one waits or says who does", () =>
    Effect.gen(function* () {
      const { call, copies, memory } = yield* withLetters()
      const other = yield* processOf(memory)
      yield* other.call("POST", `${orders}/stop`)
      const answers = yield* Effect.all([call("POST", next, keyed("k-1")), other.call("POST", next, keyed("k-1"))], {
        concurrency: 2
      })
      assert.strictEqual(yield* copies, 1)
      for (const each of answers.filter(({ status }) => status !== 200))
        assert.deepStrictEqual(shown(each), [409, "IdempotentRequestUnfinished"])
      const [one, two] = [yield* call("POST", next, keyed("k-1")), yield* other.call("POST", next, keyed("k-1"))]
      assert.deepStrictEqual([one!.status, one!.text], [200, two!.text])
      assert.strictEqual(yield* copies, 1)
    })
  )

  it.live("an answer that the journal did not take is the process's own, and says so", () =>
    Effect.gen(function* () {
      const { call, memory, open } = yield* withSlowHandler()
      yield* memory.createTopic("orders.DLT", { partitions: 1 })
      const other = yield* processOf(memory)
      const stopping = yield* Effect.forkScoped(call("POST", `${orders}/stop`, keyed("k-1")))
      yield* eventually(call("GET", orders), ({ body }) => body.state !== "RUNNING")
      yield* memory.addFault(noJournal)
      yield* Deferred.succeed(open, undefined)
      const stopped = yield* Fiber.join(stopping)
      assert.deepStrictEqual([stopped.status, stopped.body.state, keptBy(stopped)], [200, "STOPPED", "process"])
      assert.strictEqual((yield* call("POST", `${orders}/stop`, keyed("k-1"))).text, stopped.text)
      assert.strictEqual((yield* other.call("GET", orders)).body.state, "RUNNING")
    })
  )

  it.live("while one process works, another one says who does, and since when", () =>
    Effect.gen(function* () {
      const { call, memory, open } = yield* withSlowHandler()
      yield* memory.createTopic("orders.DLT", { partitions: 1 })
      const other = yield* processOf(memory)
      yield* Effect.forkScoped(call("POST", `${orders}/stop`, keyed("k-1")))
      yield* eventually(call("GET", orders), ({ body }) => body.state !== "RUNNING")
      const refused = yield* other.call("POST", `${orders}/stop`, keyed("k-1"))
      assert.deepStrictEqual([...shown(refused), refused.body.pid], [409, "IdempotentRequestUnfinished", process.pid])
      assert.isBelow(Math.abs(Date.parse(refused.body.since) - Date.now()), 60_000)
      assert.strictEqual((yield* other.call("GET", orders)).body.state, "RUNNING")
      yield* Deferred.succeed(open, undefined)
    })
  )

  it.live("a key that is empty, too long or has control characters is 400 with its path, and nothing is done", () =>
    Effect.gen(function* () {
      const { call, copies } = yield* withLetters()
      for (const key of ["", "x".repeat(256), "a\tb", "a\u0085b"]) {
        const refused = yield* call("POST", next, keyed(key))
        assert.deepStrictEqual(shown(refused), [400, "InvalidRequest"])
        assert.deepStrictEqual(
          refused.body.issues.map(({ path }: { readonly path: string }) => path),
          ["Idempotency-Key"]
        )
      }
      assert.strictEqual(yield* copies, 0)
      assert.strictEqual((yield* call("POST", next, keyed("x".repeat(255)))).status, 200)
      assert.strictEqual((yield* call("GET", orders, keyed(""))).status, 200)
    })
  )

  it.live("a request that did nothing may be repeated with its key, also as another one", () =>
    Effect.gen(function* () {
      const { call, copies } = yield* withLetters()
      assert.deepStrictEqual(shown(yield* call("POST", `${orders}/stop`, keyed("k-1"))), [409, "InvalidContainerState"])
      assert.strictEqual((yield* call("POST", `${orders}/start`)).status, 200)
      const stopped = yield* call("POST", `${orders}/stop`, keyed("k-1"))
      assert.deepStrictEqual([stopped.status, stopped.body.state, isAgain(stopped)], [200, "STOPPED", false])
      const again = yield* call("POST", `${orders}/stop`, keyed("k-1"))
      assert.deepStrictEqual([again.text, isAgain(again)], [stopped.text, true])
      const refusals = [
        [`${orders}/dlt/replay?count=0`, {}, 400],
        [`${orders}/dlt/plans`, { text: "{" }, 400],
        ["/eventbus/bindings/nobody/stop", {}, 404],
        [next, { token: "unknown" }, 401]
      ] as const
      for (const [path, options, status] of refusals)
        assert.strictEqual((yield* call("POST", path, keyed("k-2", options))).status, status, path)
      assert.strictEqual((yield* call("POST", next, keyed("k-2"))).status, 200)
      assert.strictEqual(yield* copies, 1)
    })
  )

  it.live("keys of different callers never meet", () =>
    Effect.gen(function* () {
      const { context, copies } = yield* withLetters()
      const permissions = ["view", "operate", "replay"] as const
      const authorizer = Authorizer.fromTokens(
        ["anna", "ben"].map((name) => ({ token: Redacted.make(`token-${name}`), name, permissions }))
      )
      const call = callOf(yield* Effect.provideContext(AdminWeb.make({ authorizer }), context))
      for (const name of ["anna", "ben"]) {
        const done = yield* call("POST", next, keyed("k-1", { token: `token-${name}` }))
        assert.deepStrictEqual([done.status, isAgain(done)], [200, false])
      }
      assert.strictEqual(yield* copies, 2)
    })
  )

  it.live(
    "a binding without a dead letter topic, and a registration, are kept by the process, and the answer says so",
    () =>
      Effect.gen(function* () {
        const { call } = yield* processOf()
        const body = { name: "audit", topic: "audit", groupId: "auditors", handler: "count" }
        const registered = yield* call("POST", "/eventbus/bindings", keyed("k-1", { body }))
        assert.deepStrictEqual([registered.status, keptBy(registered)], [201, "process"])
        const again = yield* call("POST", "/eventbus/bindings", keyed("k-1", { body }))
        assert.deepStrictEqual([again.status, again.text, isAgain(again)], [201, registered.text, true])
        const stop = "/eventbus/bindings/payments/stop"
        const stopped = yield* call("POST", stop, keyed("k-2"))
        assert.deepStrictEqual([stopped.status, keptBy(stopped)], [200, "process"])
        assert.deepStrictEqual((yield* call("POST", stop, keyed("k-2"))).text, stopped.text)
      })
  )

  it.live(
    "where the journal cannot be written, a replay is 503 and not done; a pause works, and the process keeps it",
    () =>
      Effect.gen(function* () {
        const { call, copies, memory } = yield* withLetters()
        yield* call("POST", `${orders}/start`)
        yield* call("POST", next, keyed("k-0"))
        const before = yield* copies
        yield* memory.addFault(noJournal)
        const refused = yield* call("POST", next, keyed("k-1"))
        assert.deepStrictEqual(
          [...shown(refused), refused.body.binding],
          [503, "IdempotencyUnavailable", "default:orders"]
        )
        assert.match(refused.body.message, /Nothing was done/)
        assert.strictEqual(yield* copies, before)
        const paused = yield* call("POST", `${orders}/pause`, keyed("k-2"))
        assert.deepStrictEqual([paused.status, paused.body.state, keptBy(paused)], [200, "PAUSED", "process"])
        assert.isTrue(isAgain(yield* call("POST", `${orders}/pause`, keyed("k-2"))))
      })
  )

  it.live("the work goes on when its caller leaves, and a repeat gets the answer", () =>
    Effect.gen(function* () {
      const { call, open, web } = yield* withSlowHandler()
      const leaving = new AbortController()
      const headers = { authorization: `Bearer ${token}`, "idempotency-key": "k-1" }
      const request = new Request(`http://localhost${orders}/stop`, { method: "POST", headers, signal: leaving.signal })
      const left = web.handler(request).catch(() => undefined)
      yield* eventually(call("GET", orders), ({ body }) => body.state !== "RUNNING")
      leaving.abort()
      yield* Effect.promise(() => left)
      yield* Deferred.succeed(open, undefined)
      const again = yield* call("POST", `${orders}/stop`, keyed("k-1"))
      assert.deepStrictEqual([again.status, again.body.state, isAgain(again)], [200, "STOPPED", true])
    })
  )
})
