import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger, References } from "effect"
import { append, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import { atOnce, runsOf } from "./runProcesses.ts"

describe("log lines of plans and runs", () => {
  scenario("OPS-20 every line that is written for a plan or its run, the client's included, has the id as runId", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      yield* append("orders.DLT", 0, [..."abc"])
      const lines: Array<readonly [message: string, runId: unknown]> = []
      const logger = Logger.make<unknown, void>(({ fiber, message }) => {
        lines.push([String(message), fiber.getRef(References.CurrentLogAnnotations)["runId"]])
      })
      const broker = {
        ...memory.broker,
        admin: Effect.map(memory.broker.admin, (admin) => ({
          ...admin,
          describeTopic: (topic: string) => Effect.andThen(Effect.logWarning("looks"), admin.describeTopic(topic))
        }))
      }
      const runs = yield* runsOf("host-a", { broker })
      const logged = <A, E>(effect: Effect.Effect<A, E>) => Effect.provide(inTime(effect), Logger.layer([logger]))
      const plan = yield* logged(runs.plan(atOnce))
      const planned = lines.splice(0)
      assert.isNotEmpty(planned)
      assert.isTrue(planned.every(([message, runId]) => message === "looks" && runId === plan.id))
      yield* logged(runs.apply(plan.id))
      assert.isTrue(lines.some(([message]) => message.startsWith("Run ")))
      assert.isTrue(lines.every(([, runId]) => runId === plan.id))
    })
  )
})
