/** OPS-03: pages of large letters read little more than they may, however many partitions the topic has. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, BrokerError } from "@eventbus/core"
import { Effect } from "effect"
import { letter } from "./ordersLetters.ts"

const mebibyte = 1024 * 1024

/** A topic of letters that are so large, one in a fetch; `read` counts the bytes that were fetched. */
const topicOf = (partitions: number, perPartition: number, valueBytes: number) => {
  const value = new Uint8Array(valueBytes)
  const of = letter({ fingerprint: "v1-0000000000000000" })
  let read = 0
  const reader: Broker.Reader = {
    read: ({ topic, partition, offset }) =>
      Effect.sync(() => {
        read += valueBytes
        const timestamp = Number(offset) * partitions + partition
        const headers = of.headers.map((header) =>
          header.key === "x-eventbus-dlt-timestamp"
            ? { ...header, value: new TextEncoder().encode(String(timestamp)) }
            : header
        )
        const record = { ...of, headers, topic, partition, offset, timestamp, value }
        const chunk = {
          ...{ topic, partition, records: [record], nextOffset: offset + 1n },
          ...{ highWatermark: BigInt(perPartition), bytes: valueBytes }
        }
        return { _tag: "Fetched", topicId: "t", chunk }
      })
  }
  const admin = {
    clusterId: "cluster",
    committedOffsets: () => Effect.succeed([]),
    topicOffsets: (topic: string) =>
      topic === "orders.DLT"
        ? Effect.succeed(
            Array.from({ length: partitions }, (_, partition) => ({
              ...{ partition, logStart: 0n, logEnd: BigInt(perPartition) }
            }))
          )
        : Effect.fail(new BrokerError.UnknownTopic({ topic }))
  }
  const never = () => Effect.die(new Error("nothing else is asked for"))
  const broker = {
    ...{ consumer: never, producer: never, transactionalProducer: never },
    ...{ reader: () => Effect.succeed(reader), admin: Effect.succeed(admin) }
  } as unknown as Broker.Broker["Service"]
  const letters = Effect.provideService(
    Binding.deadLetters(Binding.make("orders", { topic: "orders", groupId: "billing", handler: () => Effect.void })),
    Broker.Broker,
    broker
  )
  return { letters, read: () => read }
}

describe("pages of large dead letters", () => {
  for (const [partitions, perPartition] of [
    [1, 200],
    [5, 100],
    [20, 40]
  ] as const)
    it.effect(`OPS-03 the first page of letters of 1 MB reads no more than it may, of ${partitions} partitions`, () =>
      Effect.gen(function* () {
        const { letters, read } = topicOf(partitions, perPartition, 1_000_000)
        const page = yield* (yield* letters).letters()
        // One fetch of each partition may be in vain: it has told how large letters are. And one letter of each has to be read.
        assert.isAtMost(read() / mebibyte, 16 + 32 + 2 + 2 * partitions)
        assert.isAtLeast(page.letters.length, 15)
        assert.isDefined(page.next)
      })
    )

  it.effect("OPS-03 all pages together have every large letter once, the newest first", () =>
    Effect.gen(function* () {
      const { letters, read } = topicOf(5, 30, 1_000_000)
      const commands = yield* letters
      const shown: Array<string> = []
      let pages = 0
      for (let before: string | undefined, isLast = false; !isLast; isLast = before === undefined) {
        const page = yield* commands.letters(before === undefined ? {} : { before })
        shown.push(...page.letters.map(({ partition, offset }) => `${partition}@${offset}`))
        before = page.next
        pages++
      }
      const expected = Array.from({ length: 150 }, (_, index) => 149 - index)
      assert.deepStrictEqual(
        shown,
        expected.map((time) => `${time % 5}@${Math.floor(time / 5)}`)
      )
      assert.isAtLeast(pages, 3)
      assert.isAtMost(read() / mebibyte, 60 * pages)
    })
  )

  it.effect("OPS-03 a page of small letters is full, and reads no letter twice", () =>
    Effect.gen(function* () {
      const { letters, read } = topicOf(5, 100, 2_000)
      const page = yield* (yield* letters).letters()
      assert.lengthOf(page.letters, 50)
      assert.isAtMost(read(), 2_000 * 5 * 20)
    })
  )
})
