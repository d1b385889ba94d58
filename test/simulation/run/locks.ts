/**
 * Reads the locks and claims of order per key in retry topics, past every client.
 */
import type { ConsumerRecord } from "@eventbus/core"
import { Effect } from "effect"
import type { Fact, StoredLock } from "../history/History.ts"
import { decoder } from "../scenario/plannedRecords.ts"
import { retryTopics } from "../scenario/retries.ts"
import type { BindingPlan } from "../scenario/Scenario.ts"
import { type Memory, recordsFrom } from "./cluster.ts"

const prefix = "x-eventbus-order-"

/** Decisions of operators, which lie among the locks. */
const decisions = ["retry-held", "skip-held", "accept-loss"]

const read = ({ offset: at, key, headers }: ConsumerRecord.ConsumerRecord): StoredLock | undefined => {
  if (!headers.some((header) => header.key === `${prefix}kind`)) return undefined
  const of = new Map(headers.map((header) => [header.key, decoder.decode(header.value ?? undefined)]))
  const kind = of.get(`${prefix}kind`)!
  if (decisions.includes(kind)) return undefined
  const [, , , , groupId = ""] = of.get(`${prefix}bond`)?.split("/") ?? []
  const number = (name: string): number => Number(of.get(`${prefix}${name}`) ?? -1)
  return {
    ...{ at, kind, groupId, key: key === null ? null : decoder.decode(key), offset: BigInt(number("offset")) },
    ...{ hop: number("hop"), epoch: number("epoch"), next: BigInt(number("next")) }
  }
}

/** Finds the locks behind an append: the broker may have written a batch twice. */
export const stored = (plans: ReadonlyArray<BindingPlan>) => {
  const topics = new Set(plans.filter(({ perKey }) => perKey !== undefined).flatMap(retryTopics))
  const seen = new Map<string, bigint>()
  return (memory: Memory, { topic, partition }: ConsumerRecord.TopicPartition): Fact | undefined => {
    if (!topics.has(topic)) return undefined
    const name = `${topic}/${partition}`
    const from = seen.get(name) ?? 0n
    const added = recordsFrom(Effect.runSync(memory.log(topic, partition, "read_uncommitted")), from)
    const last = added.at(-1)
    if (last !== undefined) seen.set(name, last.offset + 1n)
    const locks = added.flatMap((record) => read(record) ?? [])
    return locks.length === 0 ? undefined : { _tag: "Locked", partition: name, locks }
  }
}
