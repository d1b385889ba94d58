/** A fleet of processes on Kafka: holds and commands, while processes are killed with -9 and started. */
import { assert } from "@effect/vitest"
import { Fleet } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Context, Effect, Layer } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

const partitions = 4
const count = 200

KafkaSuite.shared("a fleet", (bootstrap) => {
  Bus.story(
    bootstrap,
    "OPS-13 OPS-14 OPS-15 a hold outlives kill -9 and deploys, and a command names the process that is gone",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("fleet")
        const topics = { controlTopic: `${name}.control`, fleetTopic: `${name}.fleet` }
        const fleet = Context.get(yield* Layer.build(Fleet.layer(topics)), Fleet.Fleet)
        const journal = yield* Journal.make
        yield* fleet.createTopics
        yield* Bus.createTopic(name, partitions)
        yield* Bus.publish(Bus.numbered(name, partitions, count))
        const target = { binding: name, groupId: name }
        yield* fleet.hold({ ...target, reason: "the bank is down", by: "ann" })

        const launch = Program.run("consumer.ts", {
          brokers: bootstrap,
          journal: journal.path,
          ...{ name, topic: name, groupId: name, handlerMillis: 0, blockMillis: 0, fleet: topics },
          settings: { sessionTimeout: 6_000, heartbeatInterval: 500 }
        })
        /** The processes among these that live, and share all partitions under the hold. */
        const areHeld = (programs: ReadonlyArray<Program.Program>) =>
          Effect.map(fleet.view, ({ processes }) => {
            const own = processes.filter(({ pid }) => programs.some((program) => program.pid === pid))
            const bindings = own.flatMap((process) => process.bindings)
            return (
              own.length === programs.length &&
              bindings.every(({ pausedBy }) => pausedBy.includes("fleet")) &&
              bindings.reduce((sum, binding) => sum + binding.partitions, 0) === partitions
            )
          })
        const programs = [yield* launch, yield* launch, yield* launch]
        const output = { otherwise: () => programs.map((program) => program.output().slice(-500)) }
        yield* Bus.until("three processes share the partitions", areHeld(programs), output)

        const [victim] = programs.splice(0, 1)
        yield* victim!.end("SIGKILL")
        programs.push(yield* launch)
        const paused = yield* fleet.command({ verb: "pause", binding: name, reason: "test", wait: "2 seconds" })
        assert.deepStrictEqual(
          paused.missing.map(({ pid, accepted }) => [pid, accepted]),
          [[victim!.pid, false]]
        )
        assert.isAtLeast(paused.answers.filter(({ state }) => state === "done").length, 2)
        yield* Bus.until("the partitions of the killed process have moved", areHeld(programs), output)
        assert.deepStrictEqual(journal.started(), [])

        const isStale = Effect.map(fleet.view, ({ processes }) =>
          processes.some(({ pid, status }) => pid === victim?.pid && status === "stale")
        )
        yield* Bus.until("the killed process is stale", isStale, output)
        assert.isTrue(yield* fleet.release({ ...target, reason: "the bank is back" }))
        const resumed = yield* fleet.command({ verb: "resume", binding: name, reason: "the bank is back" })
        assert.deepStrictEqual(
          [resumed.answers.map(({ state }) => state), resumed.missing],
          [["done", "done", "done"], []]
        )
        yield* Bus.until("all records are handled", () => journal.done().length === count, output)
        assert.deepStrictEqual(Journal.repeated(journal.done()), [])
      }),
    60_000
  )
})
