import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import { onePartition } from "../onePartition.ts"

const make = onePartition(6n)

const chunk = (...offsets: ReadonlyArray<bigint>) => ({
  topic: "orders",
  partition: 0,
  generation: 1,
  records: offsets.map(
    (offset): ConsumerRecord => ({
      topic: "orders",
      partition: 0,
      offset,
      timestamp: 0,
      key: null,
      value: null,
      headers: []
    })
  ),
  nextOffset: offsets.at(-1)! + 1n,
  highWatermark: 6n,
  bytes: 0
})

describe("an assigned partition", () => {
  it.effect(
    "CARD-04 is one stream: it emits fetched records in offset order, and ends when the partition is given up",
    () =>
      Effect.gen(function* () {
        const partition = yield* make
        const seen: Array<bigint> = []
        const fiber = yield* Effect.forkChild(
          Stream.runForEach(partition.chunks, ({ records }) =>
            Effect.sync(() => void seen.push(...records.map(({ offset }) => offset)))
          ),
          { startImmediately: true }
        )
        partition.offer(chunk(0n, 1n))
        partition.offer(chunk(2n, 3n))
        yield* Effect.repeat(Effect.yieldNow, { times: 10 })
        assert.deepStrictEqual(seen, [0n, 1n, 2n, 3n])
        assert.isUndefined(fiber.pollUnsafe())
        partition.end()
        partition.offer(chunk(4n, 5n))
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(seen, [0n, 1n, 2n, 3n])
      })
  )

  it.effect(
    "that ends is over for those that its end wakes: no waiting copy is published for it (rulings 17 and 83)",
    () =>
      Effect.gen(function* () {
        const partition = yield* make
        const found: Array<boolean> = []
        const look = () => found.push(partition.mayPublish(), partition.owned())
        partition.onStop(look)
        const waiting = yield* Effect.forkChild(Effect.map(partition.until(Effect.never), look), {
          startImmediately: true
        })
        partition.end()
        yield* Fiber.join(waiting)
        assert.deepStrictEqual(found, [false, false, false, false])
      })
  )
})
