/** Compressed records of Kafka's own Java clients, both ways, and batches that a disk has damaged. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert } from "@effect/vitest"
import { Binding, Broker, type ConsumerRecord, EventBusConnector, Plan, RetryPolicy, Serde } from "@eventbus/core"
import { JavaClient, RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Context, Effect, Layer, Queue } from "effect"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"

const codecs = ["gzip", "snappy", "lz4", "zstd"] as const
const partitions = 3
const count = 3_000

type Content = Omit<ConsumerRecord.ProducerRecord, "topic"> & { readonly partition: number }

/** Keys, values and headers that are null, empty, repeated, or not ASCII. */
const contents: ReadonlyArray<Content> = Array.from({ length: count }, (_, i) => ({
  partition: i % partitions,
  key: i % 5 === 0 ? null : Bus.bytes(i % 7 === 0 ? "" : `key-${i}`),
  value: i % 11 === 0 ? null : Bus.bytes(`value ${i} `.repeat(i % 40)),
  headers: [
    { key: "n", value: Bus.bytes(String(i)) },
    { key: "n", value: null },
    { key: "größe", value: Bus.bytes("") }
  ].slice(0, i % 4)
}))

const hex = (bytes: Uint8Array | null): string => (bytes === null ? "-" : Buffer.from(bytes).toString("hex"))

const lineOf = ({ partition, key, value, headers = [] }: Content): string =>
  `${partition} ${hex(key)} ${hex(value)} ${headers.map((one) => `${one.key}=${hex(one.value)}`).join(",")}`

const lines = contents.map(lineOf)

/** The lines of each partition, in their order. */
const byPartition = (all: ReadonlyArray<string>) => Map.groupBy(all, (line) => line.split(" ", 1)[0]!)

/** Reads records of a topic, by a member of a group of its own. */
const readRecords = Effect.fnUntraced(function* (topic: string, expected: number) {
  const broker = yield* Broker.Broker
  const session = yield* broker.consumer({ groupId: topic, topics: [topic] })
  const records: Array<ConsumerRecord.ConsumerRecord> = []
  while (records.length < expected) {
    const event = yield* Queue.take(session.events)
    if (event._tag === "Fetched") records.push(...event.chunk.records)
    if (event._tag === "Assigned") for (const at of event.partitions) yield* session.seek(at, at.logStart)
    if (event._tag === "Unreadable") return yield* Effect.die(new Error(event.detail))
  }
  return records
})

const onKafka = <A, E, R>(use: (kafka: RealKafka.Cluster) => Effect.Effect<A, E, R | Broker.Broker>) =>
  RealKafka.RealKafka.use((kafka) =>
    Effect.provideService(use(kafka), Broker.Broker, Transport.make({ brokers: kafka.bootstrap }))
  )

/** Where the batches of a log begin. */
const batchesIn = (log: Buffer): ReadonlyArray<number> => {
  const starts: Array<number> = []
  for (let at = 0; at + 61 <= log.length && log.readInt32BE(at + 8) > 0; at += 12 + log.readInt32BE(at + 8)) {
    starts.push(at)
  }
  return starts
}

const collectGarbage = () => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc") as () => void
}

/** The most memory, in bytes above that of now: of buffers that are in use, looked at twice a second, and resident. */
const watchMemory = Effect.gen(function* () {
  const collect = collectGarbage()
  collect()
  const before = process.memoryUsage()
  const peak = { live: 0, resident: 0 }
  // On a busy machine buffers are given back some time after a collection: the least of several looks is what is held.
  const held = Effect.gen(function* () {
    collect()
    yield* Effect.sleep("40 millis")
    return process.memoryUsage().arrayBuffers - before.arrayBuffers
  })
  const look = Effect.gen(function* () {
    peak.resident = Math.max(peak.resident, process.memoryUsage().rss - before.rss)
    const looks = yield* Effect.all(Array.from({ length: 5 }, () => held))
    peak.live = Math.max(peak.live, Math.min(...looks))
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("500 millis"), look)))
  return peak
})

KafkaSuite.own("codecs and Kafka's own clients", {}, (it) => {
  for (const codec of codecs) {
    it.effect(
      `CLN-01 ${codec}: what Java writes is read here, and what is written here is read by Java`,
      () =>
        onKafka((kafka) =>
          Effect.gen(function* () {
            const [theirs, ours] = [Bus.fresh(`java-${codec}`), Bus.fresh(`ours-${codec}`)]
            yield* Effect.forEach([theirs, ours], (topic) => Bus.createTopic(topic, partitions), { discard: true })
            const properties = { "compression.type": codec, "linger.ms": "20", "enable.idempotence": "true" }
            yield* JavaClient.write(kafka.bootstrap, theirs, properties, lines)
            const read = yield* Effect.scoped(readRecords(theirs, count))
            assert.deepStrictEqual(byPartition(read.map(lineOf)), byPartition(lines))
            assert.deepStrictEqual([...new Set(read.map(({ compression }) => compression))], [codec])

            const producer = yield* (yield* Broker.Broker).producer({ compression: codec })
            yield* producer.sendAll(contents.map((content) => ({ ...content, topic: ours })))
            const back = yield* JavaClient.read(kafka.bootstrap, ours, partitions, count)
            assert.deepStrictEqual(byPartition(back), byPartition(lines))
            const own = yield* Effect.scoped(readRecords(ours, count))
            assert.deepStrictEqual([...new Set(own.map(({ compression }) => compression))], [codec])
          })
        ),
      120_000
    )
  }

  it.effect(
    "CLN-03 C48: a record of 2,000,000 bytes that fits because it is compressed is retried, handled, and dead-lettered once",
    () =>
      onKafka((kafka) =>
        Effect.gen(function* () {
          const name = Bus.fresh("large")
          yield* Bus.createTopic(name, 1)
          const value = Bus.bytes("a line of text, and another one\n".repeat(62_500))
          const properties = { "compression.type": "gzip", "max.request.size": "4000000" }
          const written = ["once", "always"].map((key) =>
            lineOf({ partition: 0, key: Bus.bytes(key), value, headers: [] })
          )
          yield* JavaClient.write(kafka.bootstrap, name, properties, written)
          let calls = 0
          const handled: Array<number | undefined> = []
          const app = yield* Bus.start(
            Binding.make(name, {
              ...{ topic: name, groupId: name, value: Serde.bytes },
              retry: RetryPolicy.tiered({
                blocking: { maxAttempts: 1 },
                tiers: [{ delay: "300 millis", maxAttempts: 1 }]
              }),
              handler: ({ value, record }) =>
                Effect.suspend(() => {
                  // The first record fails once, the second one always.
                  if (++calls === 1 || Bus.text(record.key) === "always") return Effect.die(new Error("no"))
                  handled.push(value?.length)
                  return Effect.void
                })
            })
          )
          yield* Bus.until("both are settled", () => app.of("Settled").length >= 4, {
            otherwise: () => app.events.map(({ _tag }) => _tag).slice(-20)
          })
          const settlements = app.of("Settled").map(({ settlement }) => settlement)
          assert.strictEqual(settlements.filter((one) => one === "DeadLettered").length, 1)
          assert.deepStrictEqual(handled, [value.length])
          assert.lengthOf(app.of("PublishFailed"), 0)
        })
      ),
    120_000
  )

  it.effect(
    "CLN-05 C50: 700 MB in 3 MB of gzip flow through a consumer that holds no more than its plan says",
    () =>
      onKafka(() =>
        Effect.gen(function* () {
          const name = Bus.fresh("bomb")
          const [lanes, perPartition] = [6, 1_170]
          yield* Bus.createTopic(name, lanes)
          const value = Bus.bytes("a line of an event that says the same as the one before\n".repeat(1_786))
          yield* Effect.scoped(
            Effect.gen(function* () {
              const limits = { maxBatchBytes: 20_000_000, maxBatchRecords: 200 }
              const producer = yield* (yield* Broker.Broker).producer({ compression: "gzip", ...limits })
              const records = Array.from({ length: perPartition }, () => ({ topic: name, key: null, value }))
              for (let partition = 0; partition < lanes; partition++) {
                yield* producer.sendAll(records.map((record) => ({ ...record, partition })))
              }
            })
          )
          const handled = new Map<number, Array<bigint>>()
          const binding = Binding.make(name, {
            ...{ topic: name, groupId: name, value: Serde.bytes, ackMode: "MANUAL", retry: RetryPolicy.blocking() },
            handler: ({ record }) =>
              Effect.sync(() => {
                const offsets = handled.get(record.partition) ?? []
                handled.set(record.partition, offsets)
                offsets.push(record.offset)
              }).pipe(Effect.delay("10 millis"))
          })
          const watched = yield* watchMemory
          // Without the journal of `Bus.start`, which keeps every record.
          const context = yield* Layer.build(EventBusConnector.layer)
          yield* Context.get(context, EventBusConnector.EventBusConnector).register(binding)
          const count = () => Array.from(handled.values()).reduce((sum, offsets) => sum + offsets.length, 0)
          yield* Bus.until("all are handled", () => count() === lanes * perPartition, {
            within: "90 seconds",
            otherwise: count
          })
          const inOrder = Array.from({ length: perPartition }, (_, offset) => BigInt(offset))
          for (const offsets of handled.values()) assert.deepStrictEqual(offsets, inOrder)
          // The buffer, and one fetch: an answer of 10 MiB at most, and a chunk of 1 MiB from each partition.
          const bound = Plan.make(binding).memory.bytes + (10 + lanes) * 1024 * 1024
          assert.isAtMost(watched.live, bound * 1.1, `resident: ${watched.resident}`)
          // The garbage that is not collected yet is on top of that.
          assert.isAtMost(watched.resident, 250_000_000)
        })
      ),
    180_000
  )

  it.effect(
    "CLN-04 C49: lz4, snappy, zstd and none are handled; a batch that the disk broke stops its partition only, until it is skipped",
    () =>
      onKafka((kafka) =>
        Effect.gen(function* () {
          const name = Bus.fresh("broken")
          const codecOf = ["lz4", "snappy", "zstd", "none"] as const
          yield* Bus.createTopic(name, codecOf.length)
          const valuesOf = (partition: number) => Array.from({ length: 300 }, (_, i) => `${partition}-${i}`.padEnd(200))
          for (const [partition, codec] of codecOf.entries()) {
            const properties = { "compression.type": codec, "batch.size": "2000", "linger.ms": "5" }
            const written = valuesOf(partition).map((value) =>
              lineOf({ partition, key: null, value: Bus.bytes(value), headers: [] })
            )
            yield* JavaClient.write(kafka.bootstrap, name, properties, written)
          }
          // A bit of the second batch's body.
          let [from, to] = [0, 0]
          yield* kafka.editLog(1, name, 0, (log) => {
            const [, second = 0] = batchesIn(log)
            from = Number(log.readBigInt64BE(second))
            to = from + log.readInt32BE(second + 23)
            log[second + 70] = log[second + 70]! ^ 1
          })
          const handled: Array<string> = []
          const app = yield* Bus.start(
            Binding.make(name, {
              ...{ topic: name, groupId: name, value: Serde.string, retry: RetryPolicy.blocking() },
              handler: ({ value }) => Effect.sync(() => void handled.push(value))
            })
          )
          const others = [1, 2, 3].flatMap(valuesOf)
          const before = valuesOf(0).slice(0, from)
          const expected = others.length + before.length
          yield* Bus.until("all others are handled", () => handled.length === expected, {
            otherwise: () => handled.length
          })
          yield* Bus.until("the batch is reported", () => app.of("BatchUnreadable").length === 1)
          assert.sameMembers(handled, [...others, ...before])
          const { partitions } = yield* app.connector.snapshot(name)
          assert.deepStrictEqual(
            partitions.map(({ pauses }) => pauses),
            [["unreadable"], [], [], []]
          )
          const held = partitions[0]!.unreadable!
          assert.deepInclude(held, { offset: BigInt(from), lastOffset: BigInt(to), codec: "lz4", problem: "broken" })
          // The header of a batch with a wrong checksum cannot be trusted.
          assert.strictEqual(held.records, undefined)
          const { read } = yield* (yield* Broker.Broker).reader()
          const at = (offset: number) => read({ topic: name, partition: 0, offset: BigInt(offset) })
          assert.deepInclude(yield* at(from), { _tag: "Unreadable", offset: held.offset, lastOffset: held.lastOffset })
          const next = yield* at(to + 1)
          assert.strictEqual(next._tag === "Fetched" ? next.chunk.records[0]?.offset : next, BigInt(to + 1))
          yield* app.connector.skip(name, { topic: name, partition: 0, offset: BigInt(from) }, "disk replaced")
          const behind = valuesOf(0).slice(to + 1)
          yield* Bus.until("the partition goes on", () => handled.length === expected + behind.length)
          assert.sameMembers(handled, [...others, ...before, ...behind])
          assert.strictEqual((yield* app.connector.health).status, "UP")
          assert.lengthOf(app.of("SessionCrashed"), 0)
        })
      ),
    120_000
  )
})
