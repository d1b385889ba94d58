/** A fleet at its bounds: times that no date can hold, texts without end, a slow or closed fleet topic, and topics that are the same. */
import { assert, describe } from "@effect/vitest"
import { BrokerError, EventBusError, Fleet } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Cause, Effect, Exit, Layer } from "effect"
import { advance, inTime, scenario } from "../bus.ts"
import { acks, control, fleetTopic, noting, operator, soon, startIn, target, write } from "./fleet.ts"

const reason = "the bank is down"
const id = "6f1c1f6e-0000-4000-8000-000000000001"
const entry = { v: 1, minV: 1, verb: "pause", binding: "orders", target: {}, by: "ann", reason, expiresAfter: 60_000 }

const oneProcess = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  const fleet = yield* operator
  yield* inTime(fleet.createTopics)
  const app = yield* startIn({}, noting([]))
  yield* advance("6 seconds")
  return { fleet, app }
})

const onFleetTopic = (effect: FaultPlan.RequestEffect) =>
  FaultPlan.make([FaultPlan.chance(1, { operation: "produce", topic: fleetTopic }, effect)])

const denied = new BrokerError.AuthorizationFailed({ resource: "topic", name: fleetTopic, operation: "write" })

describe("bounds of a fleet", () => {
  scenario("OPS-13 ruling 84 a hold ends at a time that a date can hold, and after now", () =>
    Effect.gen(function* () {
      const { fleet } = yield* oneProcess
      yield* inTime(fleet.hold({ ...target, reason }))
      for (const until of [1e300, 2 ** 63, -1e300, Number.NaN, 1_000]) {
        const refused = yield* inTime(Effect.flip(fleet.hold({ ...target, reason, until })))
        assert.deepInclude(refused, { _tag: "InvalidArgument", command: "hold", argument: "until" }, String(until))
      }
      const { holds } = yield* inTime(fleet.view)
      assert.deepStrictEqual(
        holds.map(({ untilMillis }) => untilMillis),
        [undefined]
      )
    })
  )

  scenario("OPS-13 a hold of a stranger until a time that no date can hold is named in the error of a resume", () =>
    Effect.gen(function* () {
      const { app } = yield* oneProcess
      for (const until of ["1e300", "1e999"]) {
        yield* write(control, "hold/default/billing/orders", `{"v":1,"minV":1,"by":"x","reason":"y","until":${until}}`)
        yield* soon
        const refused = yield* Effect.flip(app.connector.resume("orders"))
        assert.deepInclude(refused, { _tag: "InvalidContainerState" })
        assert.include(refused.message, "x holds it in the whole fleet: y")
      }
    })
  )

  scenario("OPS-13 OPS-14 requests are read once", () =>
    Effect.gen(function* () {
      const { fleet } = yield* oneProcess
      const once = <A extends object>(given: A): A => {
        const seen = new Set<PropertyKey>()
        return new Proxy(given, {
          get: (of, name) => {
            assert.isFalse(seen.has(name), `${String(name)} is read twice`)
            seen.add(name)
            return Reflect.get(of, name)
          }
        })
      }
      yield* inTime(fleet.hold(once({ ...target, reason })))
      assert.isTrue(yield* inTime(fleet.release(once({ ...target, reason: "over" }))))
      const { answers } = yield* inTime(fleet.command(once({ verb: "pause", reason, id })), "500 millis")
      assert.deepInclude(answers[0], { state: "done" })
    })
  )

  scenario(
    "OPS-14 a process that may not write to the fleet topic obeys at once",
    () =>
      Effect.gen(function* () {
        const { app } = yield* oneProcess
        yield* write(control, `command/${id}`, entry)
        yield* soon
        assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      }),
    { faults: onFleetTopic({ _tag: "Refuse", error: denied }) }
  )

  scenario("OPS-14 an entry that stops a tier stops no binding", () =>
    Effect.gen(function* () {
      const { app } = yield* oneProcess
      yield* write(control, `command/${id}`, { ...entry, verb: "stop", tier: 1 })
      yield* soon
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      assert.deepStrictEqual(yield* acks(id), ["refused: stop is for whole bindings, and the command names tier 1"])
    })
  )

  scenario(
    "OPS-15 a process that has left is gone, however slow the fleet topic is",
    () =>
      Effect.gen(function* () {
        const { fleet } = yield* oneProcess
        // It leaves while its next heartbeat falls due.
        for (const millis of [4_250, 4_500, 4_750]) {
          const app = yield* startIn({}, noting([]))
          yield* advance(millis)
          yield* inTime(app.close, "100 millis")
        }
        yield* advance("1 second")
        assert.lengthOf((yield* inTime(fleet.view)).processes, 1)
      }),
    { faults: onFleetTopic({ _tag: "Delay", duration: "1 second" }) }
  )

  scenario(
    "OPS-15 ruling 84 a version that no heartbeat has room for, and one topic for both, are refused by path",
    () =>
      Effect.gen(function* () {
        for (const [settings, path] of [
          [{ version: "x".repeat(257) }, "Fleet.version"],
          [{ controlTopic: "fleet", fleetTopic: "fleet" }, "Fleet.fleetTopic"],
          [{ controlTopic: "a.b", fleetTopic: "a_b" }, "Fleet.fleetTopic"],
          [{ fleetTopic: "__eventbus.control" }, "Fleet.fleetTopic"]
        ] as const) {
          const exit = yield* Effect.exit(Layer.build(Fleet.layer(settings)))
          const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
          assert.instanceOf(error, EventBusError.ConfigurationValidation)
          assert.deepStrictEqual(
            error.issues.map((issue) => issue.path),
            [path]
          )
        }
        yield* Layer.build(Fleet.layer({ version: "x".repeat(256), controlTopic: "a", fleetTopic: "b" }))
      })
  )
})
