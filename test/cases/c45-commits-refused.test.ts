import { assert, describe } from "@effect/vitest"
import { Binding, Broker, BrokerError, DeadLetter, Health } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger } from "effect"
import { advance, append, orders, scenario, start } from "../scenarios/bus.ts"

/** A cluster that takes the right to read a group away, for as long as `isDenied` says. */
const denying = (groupId: string, request: "join" | "commit", isDenied: () => boolean) =>
  Effect.map(MemoryBroker.MemoryBroker, ({ broker }): Broker.Broker["Service"] => {
    const denied = new BrokerError.AuthorizationFailed({ resource: "group", name: groupId, operation: "read" })
    const unless = <A, R>(allowed: Effect.Effect<A, BrokerError.BrokerError, R>) =>
      Effect.suspend(() => (isDenied() ? Effect.fail(denied) : allowed))
    return {
      ...broker,
      consumer: (options) => {
        if (options.groupId !== groupId) return broker.consumer(options)
        if (request === "join") return unless(broker.consumer(options))
        return Effect.map(broker.consumer(options), (session) => ({
          ...session,
          commit: (offsets) => unless(session.commit(offsets))
        }))
      }
    }
  })

const bindingOf = (deadLetter: DeadLetter.DeadLetter) =>
  Binding.make("orders", { ...orders, deadLetter, handler: () => Effect.void })

const parts = [
  { name: "OffsetCommit of the binding", groupId: "billing", request: "commit", says: "offsets cannot be committed" },
  { name: "the group of a custom dead letter strategy", groupId: "billing.dlt", request: "join", says: "strategy" },
  { name: "OffsetCommit of a custom dead letter strategy", groupId: "billing.dlt", request: "commit", says: "strategy" }
] as const

describe("C45 the ACL of a group is missing for ten minutes", () => {
  for (const { name, groupId, request, says } of parts) {
    scenario(`ruling 74 ${name}: health names the group within a minute, one line is logged, and it heals`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic)
        let isDenied = true
        const lines: Array<string> = []
        const capture = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
        const { connector } = yield* start(bindingOf(DeadLetter.custom(() => Effect.void))).pipe(
          Effect.provide(capture),
          Effect.provideServiceEffect(
            Broker.Broker,
            denying(groupId, request, () => isDenied)
          )
        )
        for (let minute = 1; minute <= 10; minute++) {
          for (const topic of ["orders", "orders.DLT"]) yield* append(topic, 0, [`${minute}`])
          yield* advance("1 minute")
          const { live, ready, reasons } = yield* connector.health
          assert.deepStrictEqual({ live, ready }, { live: true, ready: false })
          const shown = reasons.map(Health.describe).join("\n")
          assert.include(shown, says)
          assert.include(shown, `Not allowed to read group '${groupId}'`)
        }
        assert.lengthOf(
          lines.filter((line) => line.includes(`'${groupId}'`)),
          1,
          lines.join("\n")
        )
        isDenied = false
        yield* append("orders.DLT", 0, ["last"])
        yield* advance("2 minutes")
        assert.deepStrictEqual(yield* connector.health, { status: "UP", live: true, ready: true, reasons: [] })
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 10n)
        assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 11n)
      })
    )
  }
})
