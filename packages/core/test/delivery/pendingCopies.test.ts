/** Copies between the failure of their records and their acknowledgement. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import type { EventBusEvent } from "../../src/EventBusEvent.ts"
import type { ConsumerContext } from "../../src/internal/delivery/consumerContext.ts"
import * as PendingCopies from "../../src/internal/delivery/pendingCopies.ts"
import type { Partition } from "../../src/internal/partition/partition.ts"
import type { Copy } from "../../src/internal/record/copy.ts"
import type { ResultWithCopy } from "../../src/internal/record/deliveryResult.ts"
import { onePartition } from "../onePartition.ts"

const record: ConsumerRecord = {
  ...{ topic: "orders", partition: 0, offset: 0n, timestamp: 0, key: null },
  ...{ value: new Uint8Array(3), headers: [] }
}

/** As much of a consumer as copies see: what they publish, and what is said of their records. */
const consumer = () => {
  const published: Array<Copy> = []
  const told: Array<EventBusEvent> = []
  const context = {
    ...{ consumer: 0, metrics: { settled: () => {} }, committer: { mark: () => {} } },
    definition: { cluster: "default", name: "orders", listenerType: "SINGLE", ackMode: "MANUAL" },
    hub: { active: true, emit: (event: EventBusEvent) => told.push(event) },
    copyPublisher: {
      publishEach: (copies: ReadonlyArray<Copy>, onAnswer: (index: number, stored: boolean) => void) =>
        Effect.sync(() => {
          published.push(...copies)
          for (const index of copies.keys()) onAnswer(index, true)
        })
    }
    // The rest of a consumer has no part in it.
  } as unknown as ConsumerContext<unknown>
  return { context, published, told }
}

const withCopy = (partition: Partition): ResultWithCopy => ({
  settlement: "Routed",
  attempts: 1,
  failure: undefined,
  target: { topic: "orders.retry-1", tier: 1, attempt: 1 },
  copy: { partition, record, topic: "orders.retry-1", headers: [], onRefused: () => {} }
})

/** A record that failed was taken over a moment ago: its copy is not published yet. */
const takenOver = Effect.gen(function* () {
  const { context, published, told } = consumer()
  const partition = yield* onePartition(10n)
  const pendingCopies = yield* PendingCopies.make(context, partition)
  yield* pendingCopies.add(record, partition.begin(record), withCopy(partition))
  return { partition, pendingCopies, published, told }
})

const settlements = (told: ReadonlyArray<EventBusEvent>) =>
  told.flatMap((event) => (event._tag === "Settled" ? [event.settlement] : []))

describe("pending copies", () => {
  it.effect(
    "ruling 6 RTY-24 a copy that was not published when its partition was lost is never published: another owner has the record",
    () =>
      Effect.gen(function* () {
        const { partition, pendingCopies, published, told } = yield* takenOver
        partition.end()
        yield* pendingCopies.idle
        expect(published).toEqual([])
        expect(settlements(told)).toEqual(["Abandoned"])
        expect(partition.position()).toBe(0n)
      }).pipe(Effect.scoped)
  )

  it.effect(
    "RTY-24 a copy that was accepted before a stop is published: records behind it may be handled already",
    () =>
      Effect.gen(function* () {
        const { partition, pendingCopies, published, told } = yield* takenOver
        partition.stop()
        yield* pendingCopies.idle
        expect(published.map(({ topic }) => topic)).toEqual(["orders.retry-1"])
        expect(settlements(told)).toEqual(["Routed"])
        expect(partition.position()).toBe(1n)
      }).pipe(Effect.scoped)
  )
})
