import { assert, describe } from "@effect/vitest"
import { Binding, type DeadLetterList, type DeadLetterSelection } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Stream } from "effect"
import { bytes, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import type { UnreadableBatch } from "../../src/Broker.ts"
import { PartitionTail } from "../../src/internal/letters/partitionTail.ts"
import type { PartitionProgress } from "../../src/internal/replay/replayProgress.ts"
import type { Page, TopicScan } from "../../src/internal/replay/topicScan.ts"
import { orders } from "./ordersLetters.ts"

const batch: UnreadableBatch = {
  ...{ topic: "orders.DLT", partition: 0, offset: 10n, lastOffset: 30n, records: 21 },
  ...{ codec: "gzip", problem: "broken", detail: "broken" }
} as never

const empty = new Map<never, never>()
const progress: PartitionProgress = {
  ...{ partition: 0, logStart: 0n, logEnd: 40n, position: 0n, anchor: undefined },
  ...{ taken: empty, failed: empty, exhausted: empty, refused: empty, adopted: empty, discarded: empty, former: empty }
}

const recordAt = (offset: bigint) => ({
  ...{ topic: "orders.DLT", partition: 0, offset, timestamp: 1_000 },
  ...{ key: null, value: bytes("v"), headers: [] }
})

/** Offsets 0 to 39; nobody can read those from 10 to 30. */
const scan: Pick<TopicScan, "pages"> = {
  pages: ({ from, to }) => {
    const pages: Array<Page> = []
    for (let offset = from; offset < to; offset++) {
      const isBroken = offset >= batch.offset && offset <= batch.lastOffset
      if (!isBroken) pages.push({ records: [recordAt(offset)], nextOffset: offset + 1n })
      else if (pages.at(-1)?.unreadable === undefined)
        pages.push({ records: [], nextOffset: to < 31n ? to : 31n, unreadable: batch })
    }
    return Stream.fromIterable(pages)
  }
}

const target = { groupId: "billing", adopts: [], deadLetterTopic: "orders.DLT", maxReplays: 3 }

/** All pages of so many, as offsets. */
const pagesOf = Effect.fnUntraced(function* (limit: number, firstBlock: number) {
  const shown: Array<Omit<DeadLetterList.Summary, "history">> = []
  let before = progress.logEnd
  while (true) {
    const tail = new PartitionTail(progress, before, firstBlock)
    const reading = { scan, target, matches: () => true, budget: { records: 5_000, bytes: 1_000_000 } }
    for (let count = 0; count < limit; ) {
      const next = tail.take()
      if (next !== undefined) {
        shown.push(next)
        count++
      } else if (tail.isRead) break
      else yield* tail.refill(reading as never, 1_000_000)
    }
    if (tail.nextMillis === Number.NEGATIVE_INFINITY) return shown.map(({ offset }) => Number(offset))
    before = tail.shownFrom
  }
})

const readable = Array.from({ length: 40 }, (_, index) => 39 - index).filter((offset) => offset > 30 || offset < 10)
const expected = [...readable.slice(0, 9), 10, ...readable.slice(9)]

describe("dead letters in a batch that cannot be read", () => {
  scenario("OPS-03 the batch is on one page, wherever pages and blocks of the log end", () =>
    Effect.gen(function* () {
      for (const limit of [1, 5, 9, 10, 11, 40])
        for (const block of [1, 5, 15, 25, 40])
          assert.deepStrictEqual(yield* pagesOf(limit, block), expected, `${limit} a page, blocks of ${block}`)
    })
  )

  scenario("OPS-05 ruling 75 a rehearsal says that it is not complete, and skips the batch by name", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const config = new Map([["max.message.bytes", "104857600"]])
      for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic, { config })
      yield* memory.append("orders.DLT", 0, [
        { key: bytes("k"), value: bytes("a"), headers: [] },
        { key: bytes("k"), value: new Uint8Array(20_000_000), headers: [], compression: "gzip" },
        { key: bytes("k"), value: bytes("c"), headers: [] }
      ])
      const letters = yield* Binding.deadLetters(
        Binding.make("orders", { ...orders, maxBufferedBytes: 16_777_216, handler: () => Effect.void })
      )
      const rehearse = (selection: DeadLetterSelection.DeadLetterSelection) => inTime(letters.rehearse(selection))
      const report = yield* rehearse({ all: true })
      assert.deepInclude(report, { selected: 3, decodes: 2, skipped: 1, complete: false })
      const { fingerprint: _, ...skipped } = report.letters[1]!
      assert.deepStrictEqual(skipped, {
        ...{ partition: 0, offset: 1n },
        verdict: { _tag: "Skipped", because: "unreadable" }
      })
      const records = (...offsets: ReadonlyArray<bigint>) => offsets.map((offset) => ({ partition: 0, offset }))
      assert.deepInclude(yield* rehearse({ records: records(0n, 2n) }), { selected: 2, skipped: 0, complete: true })
      assert.deepInclude(yield* rehearse({ records: records(1n) }), { selected: 1, skipped: 1, complete: false })
    })
  )
})
