import { assert, describe } from "@effect/vitest"
import { Binding, Broker } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger } from "effect"
import { advance, bytes, inTime, orders, scenario, start } from "../scenarios/bus.ts"

/** With two partitions, a compressed record of this size does not fit into the buffer, and so is not decompressed. */
const large = "x".repeat(5_000)
const maxBufferedBytes = 4_000

const at = (offset: bigint, partition = 0) => ({ topic: "orders", partition, offset })

const send = Effect.fnUntraced(function* (partition: number, value: string, compression?: "gzip") {
  const { send } = yield* (yield* Broker.Broker).producer()
  yield* inTime(send({ topic: "orders", key: null, value: bytes(value), partition, compression }))
})

/** Partition 0: a record, one that cannot be read, and another one. Partition 1: a record. */
const unreadable = Effect.fnUntraced(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  yield* memory.createTopic("orders.DLT")
  yield* send(0, "before")
  yield* send(0, large, "gzip")
  yield* send(0, "behind")
  yield* send(1, "other")
  const handled: Array<string> = []
  const handler = ({ value }: { readonly value: string }) => Effect.sync(() => void handled.push(value))
  const binding = Binding.make("orders", { ...orders, maxBufferedBytes, handler })
  const app = yield* start(binding)
  yield* advance("10 seconds")
  const partition = (number: number) =>
    Effect.map(app.connector.snapshot("orders"), ({ partitions }) => partitions.find((at) => at.partition === number)!)
  const committed = memory.committed("billing", "orders", 0)
  return { app, binding, memory, handled, partition, committed }
})

describe("C49 a batch that cannot be read (ruling 79)", () => {
  scenario("CLN-04 C49 stops its own partition, and says topic, partition, offset, codec and remedy", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const capture = Logger.make(({ message }) => void lines.push(String(message)))
      yield* Effect.gen(function* () {
        const { app, handled, partition, committed } = yield* unreadable()
        assert.sameMembers(handled, ["before", "other"])
        assert.strictEqual(yield* committed, 1n)
        const held = yield* partition(0)
        assert.deepStrictEqual(held.pauses, ["unreadable"])
        assert.deepInclude(held.unreadable!, {
          ...at(1n),
          lastOffset: 1n,
          records: 1,
          codec: "gzip",
          problem: "tooLarge"
        })
        assert.match(held.unreadable!.remedy, /maxBufferedBytes/)
        assert.strictEqual(held.lag, 2n)
        assert.deepStrictEqual((yield* partition(1)).pauses, [])
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
        const { status, live, reasons } = yield* app.connector.health
        assert.deepStrictEqual([status, live, reasons.map(({ _tag }) => _tag)], ["DOWN", true, ["BatchUnreadable"]])
        // Nothing else happens, however long nobody decides.
        yield* send(1, "another")
        yield* advance("1 hour")
        assert.sameMembers(handled, ["before", "other", "another"])
        assert.lengthOf(app.of("BatchUnreadable"), 1)
        assert.lengthOf(app.of("SessionCrashed"), 0)
      }).pipe(Effect.provide(Logger.layer([capture])))
      const line = lines.find((one) => one.startsWith("Partition stopped"))
      assert.match(line ?? "", /orders-0 at offset 1 \(1 records, codec gzip\).*Raise maxBufferedBytes.*skip/)
    })
  )

  scenario("CLN-04 C49 an operator passes it: what was skipped is reported, and the partition goes on to lag 0", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const capture = Logger.make(({ message }) => void lines.push(String(message)))
      yield* Effect.gen(function* () {
        const { app, handled, partition, memory, committed } = yield* unreadable()
        const refused = yield* Effect.flip(app.connector.deadLetter("orders", at(1n), "no record to keep"))
        assert.strictEqual(refused._tag === "RecordNotHeld" && refused.held.join(), "orders-0@1")
        const elsewhere = yield* Effect.flip(app.connector.skip("orders", at(2n), "wrong offset"))
        assert.strictEqual(elsewhere._tag, "RecordNotHeld")
        yield* app.connector.skip("orders", at(1n), "restored from the source")
        yield* advance("10 seconds")
        assert.sameMembers(handled, ["before", "other", "behind"])
        assert.strictEqual(yield* committed, 3n)
        const { unreadable: batch, pauses, lag } = yield* partition(0)
        assert.deepStrictEqual([batch, pauses, lag], [undefined, [], 0n])
        assert.strictEqual((yield* app.connector.health).status, "UP")
        const [skipped, ...more] = app.of("BatchSkipped")
        assert.lengthOf(more, 0)
        assert.deepInclude(skipped!.batch, { ...at(1n), lastOffset: 1n, records: 1 })
        assert.strictEqual(skipped!.reason, "restored from the source")
        assert.lengthOf(yield* memory.log("orders.DLT", 0), 0)
      }).pipe(Effect.provide(Logger.layer([capture])))
      const line = "An operator passed the unreadable batch of orders-0 at offset 1 (1 records, codec gzip)"
      assert.include(lines, `${line}: restored from the source`)
    })
  )

  scenario("CLN-04 C49 survives a restart, and goes on by itself once retention has removed the batch", () =>
    Effect.gen(function* () {
      const { app, binding, handled, memory } = yield* unreadable()
      yield* app.close
      const next = yield* start(binding)
      yield* advance("10 seconds")
      assert.lengthOf(next.of("BatchUnreadable"), 1)
      assert.sameMembers(handled, ["before", "other"])
      const admin = yield* memory.broker.admin
      yield* admin.deleteRecords("orders", [{ partition: 0, before: 2n }])
      yield* advance("1 minute")
      assert.sameMembers(handled, ["before", "other", "behind"])
      assert.deepStrictEqual((yield* next.connector.health).reasons, [])
      assert.lengthOf(next.of("RecordsGone"), 1)
    })
  )
})
