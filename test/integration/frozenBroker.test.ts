/** A broker that accepts connections and answers nothing (SIGSTOP): a stop ends in time all the same, and nothing is lost. */
import { assert } from "@effect/vitest"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

const records = 600
const shutdownMillis = 8_000

/** A process that has handled all records but the first one of partition 0. The copy of that one is refused, since its topic does not exist. */
const behindARefusedCopy = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>) {
  const name = Bus.fresh("frozen")
  const journal = yield* Journal.make
  yield* Bus.createTopic(name, 2)
  yield* Bus.publish(Bus.numbered(name, 2, records))
  const launch = Program.run("consumer.ts", {
    ...{ brokers, journal: journal.path, name, topic: name, groupId: name },
    ...{ handlerMillis: 0, blockMillis: 0, failsAt: "0" },
    settings: {
      ...{ ackMode: "MANUAL", missingTopics: "wait", shutdownTimeout: shutdownMillis },
      ...{ sessionTimeout: 6_000, heartbeatInterval: 1_000 }
    }
  })
  const program = yield* launch
  const isRefused = () => program.output().includes(`Cannot publish to '${name}.DLT'`)
  yield* Bus.until(
    "everything behind the copy is handled, and the copy is refused",
    () => isRefused() && journal.done().length === records - 1,
    {
      otherwise: program.output
    }
  )
  return { name, journal, program, launch, deadLetterTopic: `${name}.DLT` }
})

/** Stops a process with SIGTERM while `meanwhile` happens, and answers how long that took in milliseconds. */
const stopped = Effect.fnUntraced(function* <E, R>(program: Program.Program, meanwhile: Effect.Effect<void, E, R>) {
  const before = performance.now()
  yield* program.signal("SIGTERM")
  yield* Effect.forkChild(meanwhile)
  yield* Effect.timeout(program.exit, "60 seconds")
  return performance.now() - before
})

KafkaSuite.own("a stop in front of a frozen broker", {}, (it) => {
  it.effect(
    "C53 ruling 83 LIF-12 ends within `shutdownTimeout`, and the next process finds everything",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const story = Effect.gen(function* () {
          const { name, journal, program, launch, deadLetterTopic } = yield* behindARefusedCopy(cluster.bootstrap)
          yield* cluster.freeze(1)
          const millis = yield* Effect.ensuring(stopped(program, Effect.void), cluster.thaw(1))
          assert.isAtMost(millis, shutdownMillis + 1_000, program.output())
          yield* Bus.createTopic(deadLetterTopic, 2)
          yield* launch
          yield* Bus.lagIsZero(name, name, "90 seconds")
          assert.strictEqual(new Set(journal.done().map(({ value }) => value)).size, records - 1)
          const letters = yield* Bus.readAll(deadLetterTopic)
          assert.deepStrictEqual(
            letters.map(({ value }) => Bus.text(value)),
            ["0"]
          )
        })
        yield* Bus.on({ brokers: cluster.bootstrap }, story)
      }),
    240_000
  )

  it.effect(
    "C53 ruling 83 a copy that was refused before is published when broker and topic are there again, and nothing behind it is repeated",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const story = Effect.gen(function* () {
          const { name, journal, program, launch, deadLetterTopic } = yield* behindARefusedCopy(cluster.bootstrap)
          yield* cluster.freeze(1)
          const recover = Effect.andThen(Effect.delay(cluster.thaw(1), "1 second"), Bus.createTopic(deadLetterTopic, 2))
          const millis = yield* Effect.ensuring(stopped(program, recover), cluster.thaw(1))
          assert.isAtMost(millis, shutdownMillis + 1_000, program.output())
          yield* launch
          yield* Bus.lagIsZero(name, name, "90 seconds")
          assert.deepStrictEqual(Journal.repeated(journal.done()), [])
          assert.strictEqual(journal.done().length, records - 1)
          const letters = yield* Bus.readAll(deadLetterTopic)
          assert.deepStrictEqual(
            letters.map(({ value }) => Bus.text(value)),
            ["0"]
          )
        })
        yield* Bus.on({ brokers: cluster.bootstrap }, story)
      }),
    240_000
  )
})
