/** Consume, transform, produce: exactly once for whoever reads committed records, however often the workers die. */
import { assert } from "@effect/vitest"
import { Binding, Broker, CurrentTransaction, Publisher, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Deferred, Effect, Random } from "effect"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

const byNumber = (a: string, b: string) => Number(a) - Number(b)

KafkaSuite.shared("transactions", (bootstrap) => {
  Bus.story(
    bootstrap,
    "OFF-17 workers killed with -9 at random moments: a reader of committed records finds every input exactly once",
    () =>
      Effect.gen(function* () {
        const partitions = 4
        const count = 2_400
        const name = Bus.fresh("copied")
        const copies = `${name}-copy`
        const journal = yield* Journal.make
        yield* Bus.createTopic(name, partitions)
        yield* Bus.createTopic(copies, 3)
        yield* Bus.publish(Bus.numbered(name, partitions, count))
        const launch = Program.run("copier.ts", {
          brokers: bootstrap,
          journal: journal.path,
          ...{ name, topic: name, groupId: name, handlerMillis: 1, blockMillis: 0 },
          settings: { sessionTimeout: 3_000, heartbeatInterval: 500 }
        })
        const workers = [yield* launch, yield* launch]
        for (let kill = 0; kill < 4; kill++) {
          const some = journal.done().length + (yield* Random.nextIntBetween(50, 450))
          yield* Bus.until(`${some} records are worked on`, () => journal.done().length >= Math.min(some, count), {
            otherwise: () => workers.map(({ output }) => output().slice(-500))
          })
          const victim = workers[kill % 2]!
          yield* victim.signal("SIGKILL")
          yield* victim.exit
          workers[kill % 2] = yield* launch
        }
        yield* Bus.lagIsZero(name, name, "60 seconds")
        const seen = (yield* Bus.readAll(copies)).map((record) => Bus.text(record.value) ?? "")
        assert.deepStrictEqual(
          seen.sort(byNumber),
          Array.from({ length: count }, (_, index) => String(index))
        )
        // The kills did cut transactions off: some records were worked on again.
        assert.isNotEmpty(Journal.repeated(journal.done()))
      }),
    180_000
  )

  Bus.story(
    bootstrap,
    "OFF-17 a zombie that wakes up after its partition has a new owner is fenced: what it wrote is seen by nobody",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("fenced")
        const copies = `${name}-copy`
        yield* Bus.createTopic(name)
        yield* Bus.createTopic(copies)
        yield* Bus.publish(Bus.numbered(name, 1, 3))
        const writing = yield* Deferred.make<void>()
        const awake = yield* Deferred.make<void>()
        const copier = (by: string, wait: Effect.Effect<void>) =>
          Binding.makeTransactional(`${name}-${by}`, {
            topic: name,
            groupId: name,
            ...Transport.membership({}),
            value: Serde.string,
            handler: ({ value }) =>
              Effect.andThen(
                CurrentTransaction.send({ topic: copies, key: null, value: Bus.bytes(`${value} by ${by}`) }),
                wait
              ),
            onError: () => Route.retry
          })
        const zombie = yield* Bus.start(
          copier("zombie", Effect.andThen(Deferred.succeed(writing, undefined), Deferred.await(awake)))
        )
        yield* Deferred.await(writing)
        // A new owner first takes over the transactional id of the partition, and then works on all of it.
        const broker = yield* Broker.Broker
        const successor = yield* broker.transactionalProducer({ transactionalId: `${name}/${name}/0` })
        yield* successor.transaction((transaction) =>
          transaction.sendAll(
            ["0", "1", "2"].map((value) => ({ topic: copies, key: null, value: Bus.bytes(`${value} by successor`) }))
          )
        )
        yield* Deferred.succeed(awake, undefined)
        yield* Bus.until("it is told that it was fenced", () => zombie.of("TransactionFailed").length > 0)
        assert.strictEqual(zombie.of("TransactionFailed")[0]?.error._tag, "ProducerFenced")
        const first = (yield* Bus.readAll(copies)).slice(0, 3).map((record) => Bus.text(record.value))
        assert.deepStrictEqual(first, ["0 by successor", "1 by successor", "2 by successor"])
        const written = yield* Bus.readAll(copies, "read_uncommitted")
        assert.strictEqual(Bus.text(written[0]?.value), "0 by zombie")
      })
  )

  Bus.story(
    bootstrap,
    "RCH-05 typed publishers share a producer, and in a transaction their records are seen with the handled record's offset",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("typed")
        const copies = `${name}-copy`
        yield* Bus.createTopic(name, 2)
        yield* Bus.createTopic(copies)
        const texts = { key: Serde.string, value: Serde.string } as const
        const publisher = Publisher.make({
          topic: name,
          ...texts,
          compression: "gzip",
          partitioner: ({ key }) => Number(key)
        })
        const toCopies = Publisher.make({ topic: copies, ...texts, headers: { source: name } })
        const sent = yield* publisher.publishAll(
          ["good", "bad", "good too"].map((value, index) => ({ key: String(index % 2), value }))
        )
        assert.deepStrictEqual(
          sent.map(({ partition, offset }) => [partition, offset]),
          [
            [0, 0n],
            [1, 0n],
            [0, 1n]
          ]
        )
        const app = yield* Bus.start(
          Binding.makeTransactional(name, {
            ...{ topic: name, groupId: name, ...texts, ...Transport.membership({}) },
            handler: ({ key, value }) =>
              Effect.andThen(
                toCopies.inTransaction.publish({ key, value }),
                value === "bad" ? Effect.fail("declined" as const) : Effect.void
              ),
            onError: () => Route.deadLetter()
          })
        )
        yield* Bus.until("all are settled", () => app.of("Settled").length === 3)
        const seen = yield* Bus.readAll(copies)
        assert.deepStrictEqual(
          seen.map(({ value, headers }) => [Bus.text(value), Bus.text(headers[0]?.value)]),
          [
            ["good", name],
            ["good too", name]
          ]
        )
      }).pipe(Effect.provide(Publisher.layer()))
  )
})
