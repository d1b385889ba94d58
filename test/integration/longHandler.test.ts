/** Handlers that take longer than the session: in the background they cost nothing; blocking the event loop costs the partition, and no record. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

KafkaSuite.shared("handlers longer than the session", (bootstrap) => {
  Bus.story(
    bootstrap,
    "REB-01 a handler of 15 s with a session of 6 s: no rebalance, handled once, committed",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("long")
        yield* Bus.createTopic(name, 2)
        yield* Bus.publish(Bus.numbered(name, 2, 2))
        const handled: Array<string> = []
        const app = yield* Bus.start(
          Binding.make(name, {
            topic: name,
            groupId: name,
            value: Serde.string,
            sessionTimeout: "6 seconds",
            heartbeatInterval: "2 seconds",
            retry: RetryPolicy.blocking(),
            handler: ({ value }) =>
              Effect.andThen(
                Effect.sleep("15 seconds"),
                Effect.sync(() => handled.push(value))
              )
          })
        )
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual([...handled].sort(), ["0", "1"])
        assert.strictEqual(app.of("PartitionAssigned").length, 2)
        assert.deepStrictEqual(app.of("PartitionReleased"), [])
        assert.deepStrictEqual(app.of("PartitionLost"), [])
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      }),
    Bus.waiting
  )

  Bus.story(
    bootstrap,
    "OFF-09 a handler that blocks the event loop for 8 s with a session of 6 s loses nothing, and the log says what happened",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("blocking")
        const journal = yield* Journal.make
        const count = 40
        yield* Bus.createTopic(name, 2)
        yield* Bus.publish(Bus.numbered(name, 2, count))
        const task = {
          brokers: bootstrap,
          journal: journal.path,
          ...{ name, topic: name, groupId: name, handlerMillis: 50, blockMillis: 8_000 },
          settings: { sessionTimeout: 6_000, heartbeatInterval: 2_000 }
        }
        const program = yield* Program.run("consumer.ts", { ...task, blocksAt: "10" })
        yield* Bus.lagIsZero(name, name)
        assert.strictEqual(new Set(journal.done().map(({ value }) => value)).size, count)
        assert.deepStrictEqual(Journal.committedUnhandled(yield* Bus.committed(name, name), journal.done()), [])
        assert.match(program.output(), /event loop was blocked for \d+ ms/)
        assert.include(program.output(), "Partition lost")
        assert.isTrue(journal.entries().some(({ _tag }) => _tag === "PartitionLost"))
        yield* program.signal("SIGTERM")
        assert.deepStrictEqual(yield* program.exit, { code: 130, signal: null })
      }),
    Bus.waiting
  )
})
