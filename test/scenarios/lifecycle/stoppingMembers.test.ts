/** A process that stops, and loses its place in the group meanwhile. */
import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, settle, start, until } from "../bus.ts"

describe("a process that stops", () => {
  scenario("ruling 81 does not join its group again when it has lost its session, and its successor works on", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const handled: Array<string> = []
      const isStatic = { ...orders, staticMembership: true } as const
      const old = yield* start(
        Binding.make("orders", {
          ...{ ...isStatic, shutdownTimeout: "5 minutes", handlerTimeout: "10 minutes" },
          handler: () => Effect.sleep("4 minutes")
        })
      )
      yield* append("orders", 0, ["a"])
      yield* advance("1 second")
      yield* Effect.forkScoped(old.connector.stop("orders"))
      yield* settle
      yield* memory.inject({ _tag: "SessionExpired", groupId: "billing" })
      yield* advance("30 seconds")
      assert.lengthOf(old.of("PartitionLost"), 1)
      assert.lengthOf((yield* memory.group("billing")).members, 0)
      const next = yield* start(
        Binding.make("orders", { ...isStatic, handler: ({ value }) => Effect.sync(() => void handled.push(value)) })
      )
      yield* append("orders", 0, ["b"])
      yield* until(() => handled.length === 2, "1 second")
      yield* advance("10 minutes")
      assert.deepStrictEqual(handled, ["a", "b"])
      assert.deepStrictEqual([next.of("PartitionLost"), next.of("ConsumerFenced")], [[], []])
      assert.lengthOf(old.of("PartitionAssigned"), 1)
    })
  )

  scenario("ruling 81 opens a session that has failed again without joining", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      const app = yield* start(
        Binding.make("orders", {
          ...{ ...orders, concurrency: 2, shutdownTimeout: "1 minute", handlerTimeout: "10 minutes" },
          handler: () => Effect.sleep("50 seconds")
        })
      )
      for (const partition of [0, 1]) yield* append("orders", partition, ["a"])
      yield* advance("1 second")
      const { length } = app.of("PartitionAssigned")
      yield* Effect.forkScoped(app.connector.stop("orders"))
      yield* settle
      yield* memory.inject({ _tag: "ConnectionDropped" })
      yield* advance("20 seconds")
      assert.deepStrictEqual([app.of("SessionCrashed").length, app.of("SessionStarted").length], [1, 3])
      assert.lengthOf((yield* memory.group("billing")).members, 2)
      assert.lengthOf(app.of("PartitionAssigned"), length)
    })
  )
})
