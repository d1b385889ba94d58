/** Names that join to one text, and a static member that wakes up after another process took its name (ruling 81). */
import { assert } from "@effect/vitest"
import { Binding, CurrentTransaction, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

const seconds = 15

KafkaSuite.shared("names that several parts make up", (bootstrap) => {
  Bus.story(
    bootstrap,
    "C54 ruling 81 transactional bindings of group billing on eu-orders and of group billing-eu on orders do not fence each other",
    () =>
      Effect.gen(function* () {
        const end = Bus.fresh("orders")
        const [topic, other, copies] = [`eu-${end}`, end, `${end}-copies`]
        for (const name of [topic, other, copies]) yield* Bus.createTopic(name)
        const done: Array<string> = []
        const copier = (groupId: string, reads: string) =>
          Binding.makeTransactional(`${groupId}-copier`, {
            topic: reads,
            groupId,
            value: Serde.string,
            onError: () => Route.retry,
            handler: ({ value }) =>
              Effect.tap(
                CurrentTransaction.send({ topic: copies, key: null, value: Bus.bytes(`${groupId} ${value}`) }),
                () => Effect.sync(() => void done.push(`${groupId} ${value}`))
              )
          })
        const apps = [yield* Bus.start(copier("billing", topic)), yield* Bus.start(copier("billing-eu", other))]
        const expected: Array<string> = []
        for (let second = 0; second < seconds; second++) {
          yield* Bus.publish([...Bus.numbered(topic, 1, 20, 20 * second), ...Bus.numbered(other, 1, 20, 20 * second)])
          for (let n = 0; n < 20; n++) expected.push(`billing ${20 * second + n}`, `billing-eu ${20 * second + n}`)
          yield* Effect.sleep("1 second")
        }
        yield* Bus.until("every record is copied", () => done.length >= expected.length, { within: "20 seconds" })
        const seen = (yield* Bus.readAll(copies)).map((record) => Bus.text(record.value) ?? "")
        assert.deepStrictEqual(seen.toSorted(), expected.toSorted())
        for (const app of apps)
          assert.deepStrictEqual([...app.of("SessionCrashed"), ...app.of("TransactionFailed")], [])
      }),
    Bus.waiting
  )

  Bus.story(
    bootstrap,
    "C55 ruling 81 a stopped process that goes on after its replacement has its name stops for good and says so: nothing is lost, and the two do not alternate",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("static")
        yield* Bus.createTopic(name, 2)
        const journals = [yield* Journal.make, yield* Journal.make]
        const launch = (journal: Journal.Journal) =>
          Program.run("consumer.ts", {
            brokers: bootstrap,
            journal: journal.path,
            ...{ name, topic: name, groupId: name, handlerMillis: 1, blockMillis: 0 },
            settings: { staticMembership: true, sessionTimeout: 6_000, heartbeatInterval: 500 }
          })
        const values = () => journals.map((journal) => new Set(journal.done().map(({ value }) => value)))
        let published = 0
        const publish = Effect.gen(function* () {
          yield* Bus.publish(Bus.numbered(name, 2, 20, published))
          published += 20
        })
        const isHandled = (by: number, least: number) =>
          Bus.until(`process ${by} has handled ${least}`, () => values()[by]!.size >= least, {
            otherwise: () => [old.output().slice(-800), next?.output().slice(-800)]
          })
        let next: Program.Program | undefined
        const old = yield* launch(journals[0]!)
        yield* publish
        yield* isHandled(0, 20)
        yield* old.signal("SIGSTOP")
        next = yield* launch(journals[1]!)
        yield* publish
        yield* isHandled(1, 20)
        yield* Effect.sleep("7 seconds")
        yield* old.signal("SIGCONT")
        yield* Bus.until("the old one says so", () => old.output().includes("Consumer stopped for good"), {
          otherwise: () => old.output().slice(-800)
        })
        const handledByOld = journals[0]!.done().length
        for (let second = 0; second < 10; second++) {
          yield* publish
          yield* Effect.sleep("1 second")
        }
        yield* isHandled(1, published - 20)
        assert.strictEqual(journals[0]!.done().length, handledByOld)
        assert.notInclude(next.output(), "Consumer stopped for good")
        assert.strictEqual(old.output().split("Consumer stopped for good").length, 2)
        const all = new Set(values().flatMap((each) => Array.from(each)))
        assert.strictEqual(all.size, published)
      }),
    Bus.waiting
  )
})
