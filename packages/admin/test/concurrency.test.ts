/** Commands at the same time, and requests while the connector closes. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { binding, eventually, start } from "./api.ts"

const ofStatus = (answers: ReadonlyArray<{ readonly status: number }>, wanted: number) =>
  answers.filter(({ status }) => status === wanted).length

describe("commands at the same time", () => {
  it.live("LIF-09 of ten pauses one succeeds and nine are refused; the same for resumes", () =>
    Effect.gen(function* () {
      const { call, connector } = yield* start()
      for (const [verb, state] of [
        ["pause", "PAUSED"],
        ["resume", "RUNNING"]
      ] as const) {
        const one = call("POST", `/eventbus/bindings/orders/${verb}`)
        const answers = yield* Effect.all(
          Array.from({ length: 10 }, () => one),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual([ofStatus(answers, 200), ofStatus(answers, 409)], [1, 9])
        assert.strictEqual(yield* connector.getState("orders"), state)
      }
    })
  )

  it.live(
    "LIF-09 pauses and resumes at once end in the state of the last one that succeeded, and every answer is 200 or 409",
    () =>
      Effect.gen(function* () {
        const { call, connector, append } = yield* start()
        const verbs = Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? "pause" : "resume"))
        const answers = yield* Effect.forEach(
          verbs,
          (verb) => Effect.map(call("POST", `/eventbus/bindings/orders/${verb}`), ({ status }) => ({ verb, status })),
          { concurrency: "unbounded" }
        )
        const done = (wanted: string) =>
          ofStatus(
            answers.filter(({ verb }) => verb === wanted),
            200
          )
        assert.strictEqual(ofStatus(answers, 200) + ofStatus(answers, 409), 60)
        const state = yield* connector.getState("orders")
        assert.strictEqual(done("pause") - done("resume"), state === "PAUSED" ? 1 : 0)
        if (state === "PAUSED") yield* call("POST", "/eventbus/bindings/orders/resume")
        yield* append("orders", "good")
        const { body } = yield* eventually(
          call("GET", "/eventbus/bindings/orders"),
          (answer) => answer.body.metrics.processed === 1
        )
        assert.strictEqual(body.metrics.processed, 1)
      })
  )

  it.live("one name is registered once, however many ask", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const body = { name: "payments", topic: "payments", groupId: "payers", handler: "charge" }
      const answers = yield* Effect.all(
        Array.from({ length: 10 }, () => call("POST", "/eventbus/bindings", { body })),
        {
          concurrency: "unbounded"
        }
      )
      assert.deepStrictEqual([ofStatus(answers, 201), ofStatus(answers, 409)], [1, 9])
    })
  )
})

describe("ADM-14 while the connector closes", () => {
  it.live("registration is refused with 503 while reading still works, and afterwards too", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const mayEnd = yield* Deferred.make<void>()
      const handler = () => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(mayEnd))
      const { call, append, close } = yield* start({ bindings: [binding("orders", { handler })] })
      yield* append("orders", "good")
      yield* Deferred.await(begun)
      const ready = yield* eventually(call("GET", "/health/ready"), ({ status }) => status === 200)
      assert.strictEqual(ready.status, 200)

      const closing = yield* Effect.forkChild(close, { startImmediately: true })
      const body = { name: "payments", topic: "payments", groupId: "payers", handler: "charge" }
      const refused = yield* eventually(call("POST", "/eventbus/bindings", { body }), ({ status }) => status === 503)
      assert.deepStrictEqual(
        [refused.status, refused.body._tag, refused.body.message],
        [503, "ConnectorClosed", "Binding 'payments' was refused: the connector is shutting down."]
      )
      const list = yield* call("GET", "/eventbus/bindings")
      assert.deepStrictEqual(
        [list.status, list.body.map(({ key }: { readonly key: string }) => key)],
        [200, ["default:orders"]]
      )
      const detail = yield* call("GET", "/eventbus/bindings/orders")
      assert.deepStrictEqual(
        [detail.status, detail.body.assigned.some(({ inFlight }: { readonly inFlight: number }) => inFlight === 1)],
        [200, true]
      )
      assert.strictEqual((yield* call("GET", "/eventbus/bindings/orders/dlt/stats")).status, 200)
      assert.deepStrictEqual(
        (yield* call("GET", "/eventbus/health")).body.reasons
          .map(({ reason }: { readonly reason: string }) => reason)
          .includes("Closing"),
        true
      )
      assert.deepStrictEqual(
        [(yield* call("GET", "/health/ready")).status, (yield* call("GET", "/health/live")).status],
        [503, 200]
      )

      yield* Deferred.succeed(mayEnd, undefined)
      yield* Fiber.join(closing)
      assert.deepStrictEqual((yield* call("GET", "/eventbus/bindings")).body, [])
      assert.strictEqual((yield* call("POST", "/eventbus/bindings", { body })).status, 503)
    })
  )
})
