/** Every route of the seed over HTTP, on a cluster in memory. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { binding, eventually, Refused, start } from "./api.ts"

const payments = { name: "payments", topic: "payments", groupId: "payers", handler: "charge" }
const waitsFor = (count: number) => (answer: { readonly body: { readonly count: number } }) =>
  answer.body.count === count

describe("bindings over HTTP", () => {
  it.live("ADM-05 GET /bindings lists all bindings with state, by key", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ bindings: [binding("orders"), binding("audit", { topic: "payments" })] })
      yield* call("POST", "/eventbus/bindings/orders/stop")
      const { status, body } = yield* call("GET", "/eventbus/bindings")
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(
        body.map(({ key, state, topic }: Record<string, unknown>) => [key, state, topic]),
        [
          ["default:audit", "RUNNING", "payments"],
          ["default:orders", "STOPPED", "orders"]
        ]
      )
    })
  )

  it.live("ADM-04 start, stop, pause and resume move the binding, and answer its state", () =>
    Effect.gen(function* () {
      const { call, connector } = yield* start()
      for (const [verb, state] of [
        ["pause", "PAUSED"],
        ["resume", "RUNNING"],
        ["stop", "STOPPED"],
        ["start", "RUNNING"]
      ] as const) {
        const { status, body } = yield* call("POST", `/eventbus/bindings/orders/${verb}`)
        assert.deepStrictEqual([status, body.name, body.state], [200, "orders", state])
        assert.strictEqual(yield* connector.getState("orders"), state)
      }
    })
  )

  it.live("ADM-04 pause and resume take a tier", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const paused = yield* call("POST", "/eventbus/bindings/orders/pause?tier=2")
      assert.deepStrictEqual([paused.body.state, paused.body.pausedTiers], ["RUNNING", [2]])
      const resumed = yield* call("POST", "/eventbus/bindings/orders/resume?tier=2")
      assert.deepStrictEqual(resumed.body.pausedTiers, [])
    })
  )

  it.live("ADM-06 GET /bindings/{name} has consumers, partitions, problems and a summary of metrics", () =>
    Effect.gen(function* () {
      const { call, append } = yield* start({ bindings: [binding("orders"), binding("audit", { topic: "payments" })] })
      yield* append("payments", "good")
      yield* eventually(call("GET", "/eventbus/bindings/audit"), (answer) => answer.body.metrics.processed === 1)
      yield* append("orders", "good", "bad", "good")
      const { body } = yield* eventually(
        call("GET", "/eventbus/bindings/orders"),
        (answer) => answer.body.metrics.processed === 2 && answer.body.metrics.deadLettered === 1
      )
      const { metrics } = body
      assert.deepStrictEqual(
        [metrics.processed, metrics.failed, metrics.failedByException, metrics.deadLetteredByReason],
        [2, 1, [{ name: "Refused", count: 1 }], [{ name: "NON_RETRYABLE", count: 1 }]]
      )
      assert.strictEqual(metrics.handlerCalls, 3)
      assert.deepStrictEqual(
        [body.assigned.length, body.assigned[0].position, body.assigned[0].logEnd, body.lag],
        [3, "3", "3", 0]
      )
      assert.deepStrictEqual(
        body.containers.map(({ name }: { readonly name: string }) => name),
        ["eventbus-orders", "eventbus-orders-retry-1", "eventbus-orders-retry-2"]
      )
      assert.deepStrictEqual([body.consumers[0].status, body.problems], ["running", []])
      yield* call("POST", "/eventbus/bindings/orders/pause")
      const paused = yield* call("GET", "/eventbus/bindings/orders")
      assert.deepStrictEqual(paused.body.problems, ["Binding 'orders' on cluster 'default': paused by operator"])
    })
  )

  it.live("ADM-05 ADM-06 the lag of a binding that is stopped or was never started is not known, and is no 0", () =>
    Effect.gen(function* () {
      const idle = binding("idle", { topic: "payments", autoStartup: false })
      const { call, append } = yield* start({ bindings: [binding("orders"), idle] })
      yield* eventually(call("GET", "/eventbus/bindings/orders"), ({ body }) => body.lag === 0)
      const stopped = yield* call("POST", "/eventbus/bindings/orders/stop")
      yield* append("orders", "good", "good")
      yield* append("payments", "good")
      const listed: ReadonlyArray<Record<string, unknown>> = (yield* call("GET", "/eventbus/bindings")).body
      const { body: detail } = yield* call("GET", "/eventbus/bindings/orders")
      assert.strictEqual(listed.length, 2)
      for (const each of [stopped.body, detail, ...listed]) assert.notProperty(each, "lag", each.key)
      yield* call("POST", "/eventbus/bindings/orders/start")
      yield* eventually(call("GET", "/eventbus/bindings/orders"), ({ body }) => body.lag === 0)
    })
  )

  it.live("ADM-02 POST /bindings registers a binding, answers with it, and it consumes", () =>
    Effect.gen(function* () {
      const { call, append } = yield* start()
      const { status, body } = yield* call("POST", "/eventbus/bindings", { body: payments })
      assert.deepStrictEqual(
        [status, body.key, body.state, body.topic],
        [201, "default:payments", "RUNNING", "payments"]
      )
      yield* append("payments", "one")
      const { body: detail } = yield* eventually(
        call("GET", "/eventbus/bindings/payments"),
        (answer) => answer.body.metrics.processed === 1
      )
      assert.strictEqual(detail.metrics.processed, 1)
    })
  )

  it.live("ADM-02 the handler is the name by default, kebab-case is read, and autoStartup is respected", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const body = {
        name: "charge",
        topic: "payments",
        "group-id": "payers",
        "auto-startup": false,
        "max-poll-records": 7
      }
      const answer = yield* call("POST", "/eventbus/bindings", { body })
      assert.deepStrictEqual([answer.status, answer.body.state], [201, "CREATED"])
    })
  )

  it.live("ADM-03 DELETE /bindings/{name} destroys and unregisters", () =>
    Effect.gen(function* () {
      const { call, connector } = yield* start()
      const { status, body } = yield* call("DELETE", "/eventbus/bindings/orders")
      assert.deepStrictEqual([status, body.key, body.state], [200, "default:orders", "DESTROYED"])
      assert.deepStrictEqual((yield* call("GET", "/eventbus/bindings")).body, [])
      assert.deepStrictEqual(yield* connector.listBindings, [])
      assert.strictEqual((yield* call("GET", "/eventbus/bindings/orders")).status, 404)
    })
  )

  it.live("ADM-13 a binding of another cluster is {cluster}:{name}, and an ambiguous plain name is 409", () =>
    Effect.gen(function* () {
      const { call } = yield* start({
        clusters: ["dr"],
        bindings: [
          binding("orders"),
          binding("orders", { cluster: "dr", topic: "payments" }),
          binding("solo", { cluster: "dr", topic: "audit" })
        ]
      })
      const ambiguous = yield* call("POST", "/eventbus/bindings/orders/pause")
      assert.deepStrictEqual(
        [ambiguous.status, ambiguous.body._tag, ambiguous.body.keys],
        [409, "AmbiguousBinding", ["default:orders", "dr:orders"]]
      )
      for (const path of ["dr:orders", "dr%3Aorders", "solo"]) {
        assert.strictEqual((yield* call("GET", `/eventbus/bindings/${path}`)).body.cluster, "dr")
      }
      const paused = yield* call("POST", "/eventbus/bindings/dr:orders/pause")
      assert.deepStrictEqual([paused.status, paused.body.key, paused.body.state], [200, "dr:orders", "PAUSED"])
      assert.strictEqual((yield* call("GET", "/eventbus/bindings/default:orders")).body.state, "RUNNING")
    })
  )

  it.live(
    "MUL-05 registration over HTTP takes a known alias, and refuses an unknown one with those that are known",
    () =>
      Effect.gen(function* () {
        const { call } = yield* start({ clusters: ["dr"] })
        const known = yield* call("POST", "/eventbus/bindings", { body: { ...payments, cluster: "dr" } })
        assert.deepStrictEqual([known.status, known.body.key], [201, "dr:payments"])
        const unknown = yield* call("POST", "/eventbus/bindings", { body: { ...payments, cluster: "west" } })
        assert.strictEqual(unknown.status, 400)
        assert.deepStrictEqual(unknown.body, {
          _tag: "UnknownCluster",
          message: "There is no cluster 'west'. Known are: [default, dr].",
          cluster: "west",
          known: ["default", "dr"]
        })
        const both = yield* call("POST", "/eventbus/bindings", {
          body: { ...payments, cluster: "west", concurrency: 0 }
        })
        assert.deepStrictEqual(
          [both.body._tag, both.body.issues.map(({ path }: { readonly path: string }) => path).sort()],
          ["ConfigurationValidation", ["cluster", "concurrency"]]
        )
      })
  )

  it.live("GET /health says how all bindings are", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      yield* eventually(call("GET", "/eventbus/health"), ({ body }) => body.status === "UP")
      yield* call("POST", "/eventbus/bindings/orders/pause")
      const { status, body } = yield* call("GET", "/eventbus/health")
      assert.deepStrictEqual([status, body.status, body.live, body.ready], [200, "DEGRADED", true, false])
      assert.deepStrictEqual([body.reasons[0].reason, body.reasons[0].bindings], ["Paused", ["orders"]])
      assert.match(body.reasons[0].since, /^\d{4}-.*Z$/)
    })
  )
})

describe("dead letters over HTTP", () => {
  const withLetters = Effect.fnUntraced(function* (count: number) {
    let isBad = true
    const handler = (value: string) => (isBad && value.startsWith("bad") ? Effect.fail(new Refused()) : Effect.void)
    const program = yield* start({ bindings: [binding("orders", { handler })] })
    yield* program.append("orders", ...Array.from({ length: count }, (_, index) => `bad-${index}`))
    yield* eventually(program.call("GET", "/eventbus/bindings/orders/dlt/stats"), waitsFor(count))
    isBad = false
    return program
  })

  it.live("ADM-10 GET dlt/stats gives count, oldest, newest and the breakdown by exception type", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(3)
      const { status, body } = yield* call("GET", "/eventbus/bindings/orders/dlt/stats")
      assert.strictEqual(status, 200)
      assert.deepStrictEqual([body.count, body.stored, body.byExceptionClass], [3, 3, [{ name: "Refused", count: 3 }]])
      assert.isTrue(Date.parse(body.oldest) <= Date.parse(body.newest) && Date.now() - Date.parse(body.oldest) < 60_000)
    })
  )

  it.live("ADM-10 an empty topic gives zero and no dates", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const { body } = yield* call("GET", "/eventbus/bindings/orders/dlt/stats")
      assert.deepStrictEqual([body.count, "oldest" in body, "newest" in body], [0, false, false])
    })
  )

  it.live("ADM-10 a dead letter whose time is none of a calendar counts, and has no date", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* start()
      yield* memory.createTopic("orders.DLT")
      const timestamp = 1_700_000_000_000_000_000
      yield* memory.append("orders.DLT", 0, [{ key: null, value: new Uint8Array(1), timestamp }])
      const { status, body } = yield* call("GET", "/eventbus/bindings/orders/dlt/stats")
      assert.deepStrictEqual([status, body.count, "oldest" in body, "newest" in body], [200, 1, false, false])
    })
  )

  it.live("ADM-07 POST dlt/replay?count refuses a dead letter from a topic of nobody here, and says why", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* start()
      yield* memory.createTopic("orders.DLT")
      const headers = Object.entries({ topic: "__consumer_offsets", partition: "0", offset: "1" }).map(
        ([name, text]) => ({
          key: `x-eventbus-original-${name}`,
          value: new TextEncoder().encode(text)
        })
      )
      yield* memory.append("orders.DLT", 0, [{ key: null, value: null, headers }])
      const { body } = yield* call("POST", "/eventbus/bindings/orders/dlt/replay?count=2")
      const reason = "Topic '__consumer_offsets' is neither the main topic of the binding nor one of its origins."
      assert.deepStrictEqual([body.replayed, body.refused, body.refusals], [0, 1, [{ name: reason, count: 1 }]])
    })
  )

  it.live("ADM-07 POST dlt/replay?count replays so many records and reports how many", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(3)
      const first = yield* call("POST", "/eventbus/bindings/orders/dlt/replay?count=2")
      assert.deepStrictEqual(
        [first.status, first.body],
        [200, { replayed: 2, passedOver: 0, refused: 0, foreign: [], unreadable: 0 }]
      )
      const { body } = yield* call("POST", "/eventbus/bindings/orders/dlt/replay?count=5")
      assert.strictEqual(body.replayed, 1)
      yield* eventually(call("GET", "/eventbus/bindings/orders"), (answer) => answer.body.metrics.processed === 3)
    })
  )

  it.live("ADM-08 POST dlt/replay?from&to replays a half-open window, with times as ISO-8601 or epoch ms", () =>
    Effect.gen(function* () {
      const { call } = yield* withLetters(2)
      const { body: stats } = yield* call("GET", "/eventbus/bindings/orders/dlt/stats")
      const newest = Date.parse(stats.newest)
      const path = "/eventbus/bindings/orders/dlt/replay"
      const before = yield* call("POST", `${path}?from=2020-01-01&to=${stats.oldest}`)
      assert.deepStrictEqual([before.status, before.body.replayed], [200, 0])
      const all = yield* call("POST", `${path}?from=2020-01-01T00:00:00+02:00&to=${newest + 1}`)
      assert.strictEqual(all.body.replayed, 2)
    })
  )

  it.live("ADM-09 POST dlt/replay-to-tier?tier&count replays to that tier; one that does not exist is refused", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* withLetters(3)
      const path = "/eventbus/bindings/orders/dlt/replay-to-tier"
      const unknown = yield* call("POST", `${path}?tier=3&count=1`)
      assert.deepStrictEqual(
        [unknown.status, unknown.body._tag, unknown.body.message],
        [400, "UnknownTier", "There is no tier 3: the binding has tiers 1 to 2."]
      )
      const { status, body } = yield* call("POST", `${path}?tier=2&count=2`)
      assert.deepStrictEqual([status, body.replayed], [200, 2])
      assert.strictEqual((yield* memory.log("orders.retry-2", 0)).length, 2)
    })
  )

  it.live("ADM-11 DELETE dlt?olderThan purges by time or age, and reports the number removed", () =>
    Effect.gen(function* () {
      const { call, memory } = yield* withLetters(3)
      const path = "/eventbus/bindings/orders/dlt?olderThan"
      for (const older of ["7d", "1%20hour", "PT1H", "2020-01-01T00:00:00Z"]) {
        const { status, body } = yield* call("DELETE", `${path}=${older}`)
        assert.deepStrictEqual([status, body], [200, { purged: 0 }], older)
      }
      yield* Effect.sleep("5 millis")
      assert.deepStrictEqual((yield* call("DELETE", `${path}=1ms`)).body, { purged: 3 })
      assert.strictEqual((yield* memory.log("orders.DLT", 0)).length, 0)
    })
  )
})
