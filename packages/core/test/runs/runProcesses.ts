/** Processes of one group that make plans and run them on a cluster in memory. A process is a client id, which can be killed or suspended. */
import { createHash } from "node:crypto"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { bytes, headersOf, text } from "../../../../test/scenarios/bus.ts"
import type { RecordPosition } from "../../src/ConsumerRecord.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import type { Options } from "../../src/internal/runs/runOptions.ts"
import * as Runs from "../../src/internal/runs/runs.ts"
import type { PlanRequest } from "../../src/ReplayPlan.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"
import * as Serde from "../../src/Serde.ts"
import * as TopicName from "../../src/TopicName.ts"
import { ordersReplay } from "../replay/ordersReplay.ts"
import { type Around, clientsOf } from "../replay/replayProcesses.ts"

// Another thread makes a digest, which takes real time. Virtual time goes on meanwhile, so that a process could wait for longer than a lease lasts: here a digest is made at once.
Object.defineProperty(globalThis.crypto.subtle, "digest", {
  configurable: true,
  value: async (_: string, bytes: Uint8Array): Promise<ArrayBuffer> =>
    Uint8Array.from(createHash("sha256").update(bytes).digest()).buffer
})

export const runsOf = (hostname: string, changes: Partial<Options> = {}, around: Around = () => Effect.void) =>
  MemoryBroker.MemoryBroker.useSync((memory) =>
    Runs.make({
      ...ordersReplay,
      broker: clientsOf(memory, hostname, around),
      ...{ hostname, tierGroupId: "billing", ownFingerprint: undefined, isBreakerOpen: () => false },
      tiers: Tiers.make(
        { topic: "orders", groupId: "billing" },
        TopicName.standard,
        RetryPolicy.tiered({ tiers: ["10 seconds", "1 minute"] }).tiers
      ),
      transforms: new Map(),
      serdes: { key: Serde.bytes, value: Serde.string },
      ...changes
    })
  )

/** All letters, at once: without a canary, and as fast as it goes. */
export const atOnce = {
  ...{ action: "replay", select: { all: true }, rate: 100_000, canary: 0, reason: "the gateway is back" }
} as const satisfies PlanRequest

/** A copy of the run that was dead-lettered again, as the connector writes it. */
export const returned = (runId: string, letter: Omit<RecordPosition, "topic">, value = "back") => ({
  key: bytes("k"),
  value: bytes(value),
  headers: Object.entries({
    "x-eventbus-original-topic": "orders",
    "x-eventbus-original-partition": "0",
    "x-eventbus-original-offset": "7",
    "x-eventbus-dlt-reason": "RETRIES_EXHAUSTED",
    "x-eventbus-replay-count": "1",
    "x-eventbus-run-id": `${runId}/${letter.partition}@${letter.offset}`,
    "x-eventbus-copy-owner": "orders.DLT/billing"
  }).map(([key, header]) => ({ key, value: bytes(header) }))
})

/** The group has handled everything in the main topic. */
export const commitAll = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  const admin = yield* memory.broker.admin
  const logs = yield* admin.topicOffsets("orders")
  yield* admin.setCommittedOffsets(
    "billing",
    logs.map(({ partition, logEnd }) => ({ topic: "orders", partition, offset: logEnd }))
  )
}).pipe(Effect.scoped)

/** The letters that copies in the main topic are made of, in the order of the log. */
export const lettersCopied = Effect.fnUntraced(function* (runId: string, partitions = 1) {
  const memory = yield* MemoryBroker.MemoryBroker
  const logs = yield* Effect.forEach(Array.from({ length: partitions }).keys(), (partition) =>
    memory.log("orders", partition)
  )
  return logs.flat().flatMap((record) => {
    const mark = headersOf(record).get("x-eventbus-run-id") ?? ""
    return mark.startsWith(`${runId}/`) ? [mark.slice(runId.length + 1)] : []
  })
})

export const journalKeys = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  return (yield* memory.log("orders.DLT.replays", 0)).map(({ key }) => text(key) ?? "")
})
