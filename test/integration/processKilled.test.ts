/** Consumers killed with -9 while they work: every record is handled, and nothing is committed that was not. */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Random } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

const partitions = 6
const count = 3_000
const kills = 4

KafkaSuite.shared("processes killed with -9", (bootstrap) => {
  for (const settings of [
    { ackMode: "MANUAL_IMMEDIATE", processingOrder: "partition" },
    { ackMode: "MANUAL", processingOrder: "unordered" }
  ] as const) {
    Bus.story(
      bootstrap,
      `OFF-06 NFR-01 ${settings.ackMode}, ${settings.processingOrder}: no record is lost, and none is committed that was not handled`,
      () =>
        Effect.gen(function* () {
          const name = Bus.fresh("killed")
          const journal = yield* Journal.make
          yield* Bus.createTopic(name, partitions)
          yield* Bus.publish(Bus.numbered(name, partitions, count))
          const launch = Program.run("consumer.ts", {
            brokers: bootstrap,
            journal: journal.path,
            ...{ name, topic: name, groupId: name, handlerMillis: 2, blockMillis: 0 },
            settings: { ...settings, sessionTimeout: 3_000, heartbeatInterval: 500 }
          })
          const programs = [yield* launch, yield* launch]
          // The committed offset is read first: everything below it must be in the journal by then.
          const check = Effect.gen(function* () {
            const committed = yield* Bus.committed(name, name)
            assert.deepStrictEqual(Journal.committedUnhandled(committed, journal.done()), [])
          })
          for (let kill = 0; kill < kills; kill++) {
            const from = journal.done().length
            const some = from + (yield* Random.nextIntBetween(50, 400))
            yield* Bus.until(
              `${some} records are handled`,
              Effect.map(check, () => journal.done().length >= Math.min(some, count)),
              {
                otherwise: () => programs.map(({ output }) => output().slice(-500))
              }
            )
            const victim = programs[kill % 2]!
            yield* victim.signal("SIGKILL")
            assert.strictEqual((yield* victim.exit).signal, "SIGKILL")
            yield* check
            programs[kill % 2] = yield* launch
          }
          yield* Bus.lagIsZero(name, name)
          yield* check
          assert.strictEqual(new Set(journal.done().map(({ value }) => value)).size, count)
        })
    )
  }
})
