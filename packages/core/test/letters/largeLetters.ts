/**
 * Groups 50 000 dead letters, 2000 of which have values of 1 MB, lists a page of them, and rehearses them, in the heap that its caller gives it. Their journal has 400 MB of entries
 * about 800 000 copies. Prints the counts, the history of the newest letter, and the most memory that the process ever had, in MB.
 */
import { Binding, Broker, BrokerError, type ConsumerRecord } from "@eventbus/core"
import { Effect, Layer } from "effect"
import { letter } from "./ordersLetters.ts"

const partitions = 5
const records = 10_000
const valueBytes = 1_000_000
/** Every so many records have a value: all values together are 2 GB. */
const apart = 25
const perChunk = 100

/** The headers of each group, made once. */
const groups = Array.from({ length: 40 }, (_, index) =>
  letter({
    fingerprint: `v1-${index}`,
    message: `order ${index} `.repeat(100),
    stack: `Down\n${"    at charge (/app/node_modules/x/y.js:1:1)\n".repeat(30)}`
  })
)

const recordAt = (partition: number, offset: number): ConsumerRecord.ConsumerRecord => ({
  ...groups[offset % groups.length]!,
  ...{ topic: "orders.DLT", partition, offset: BigInt(offset), timestamp: offset },
  value: offset % apart === 0 ? new Uint8Array(valueBytes) : null
})

const entries = 8_000
const copiesOfEntry = 100
const runId = "6f1c1f6e-0000-4000-8000-000000000001"

const batchOf = (offset: number) =>
  Buffer.from(
    JSON.stringify({
      ...{ v: 1, taken: copiesOfEntry },
      copies: Array.from({ length: copiesOfEntry }, (_, index) => ({
        letter: `0@${offset + index}`,
        copy: `orders-0@${index}${" ".repeat(400)}`
      }))
    })
  )
const early = batchOf(0)
const newest = batchOf(records - copiesOfEntry)

/** The last entry of the journal is about the newest letters, all others about old ones. */
const entryAt = (offset: number): ConsumerRecord.ConsumerRecord => ({
  ...{ topic: "orders.DLT.replays", partition: 0, offset: BigInt(offset), timestamp: records, headers: [] },
  key: Buffer.from(`batch/${runId}/${offset}/billing`),
  value: new Uint8Array(offset === entries - 1 ? newest : early)
})

const reader: Broker.Reader = {
  read: ({ topic, partition, offset }) =>
    Effect.sync(() => {
      const isJournal = topic === "orders.DLT.replays"
      const to = Math.min(Number(offset) + perChunk, isJournal ? entries : records)
      const found = Array.from({ length: to - Number(offset) }, (_, index) =>
        isJournal ? entryAt(Number(offset) + index) : recordAt(partition, Number(offset) + index)
      )
      const chunk = {
        topic,
        partition,
        records: found,
        nextOffset: BigInt(to),
        highWatermark: BigInt(isJournal ? entries : records),
        bytes: 0
      }
      return { _tag: "Fetched", topicId: "t", chunk }
    })
}

const admin = {
  clusterId: "cluster",
  committedOffsets: () => Effect.succeed([]),
  topicOffsets: (topic: string) => {
    const of = (count: number, logEnd: number) =>
      Effect.succeed(
        Array.from({ length: count }, (_, partition) => ({ partition, logStart: 0n, logEnd: BigInt(logEnd) }))
      )
    if (topic === "orders.DLT") return of(partitions, records)
    return topic === "orders.DLT.replays" ? of(1, entries) : Effect.fail(new BrokerError.UnknownTopic({ topic }))
  }
}

const never = () => Effect.die(new Error("nothing else is asked for"))
const broker = {
  ...{ consumer: never, producer: never, transactionalProducer: never },
  ...{ reader: () => Effect.succeed(reader), admin: Effect.succeed(admin) }
} as unknown as Broker.Broker["Service"]

const orders = Binding.make("orders", { topic: "orders", groupId: "billing", handler: () => Effect.void })

const program = Effect.gen(function* () {
  const letters = yield* Binding.deadLetters(Binding.rehearsable(orders, Layer.empty))
  const grouped = yield* letters.groups()
  const page = yield* letters.letters()
  const { passes } = yield* letters.rehearse({ all: true })
  return {
    groups: grouped.groups.length,
    counted: grouped.groups.reduce((sum, { count }) => sum + count, 0),
    page: page.letters.length,
    replayed: page.letters.filter(({ history }) => history[0]?.runId === runId).length,
    passes,
    megabytes: Math.round(process.resourceUsage().maxRSS / 1_000)
  }
})

console.log(JSON.stringify(await Effect.runPromise(Effect.provideService(program, Broker.Broker, broker))))
