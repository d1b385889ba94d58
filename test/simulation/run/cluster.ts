/**
 * Reads the cluster of a run directly, past every client.
 */
import type { Broker, ConsumerRecord } from "@eventbus/core"
import type { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import * as Copies from "../history/copies.ts"
import type { Entry, Fact, History, Output, Remains, StoredCopy } from "../history/History.ts"
import { deadLetterTopics, groupOf, mainTopics, outputTopic, sourceTopics } from "../scenario/retries.ts"
import type { BindingPlan } from "../scenario/Scenario.ts"

export type Memory = MemoryBroker.MemoryBroker["Service"]

/** Partitions of main and retry topics that are not read to their end. */
export const lag = Effect.fnUntraced(function* (memory: Memory, plans: ReadonlyArray<BindingPlan>) {
  const lagging: Array<Remains["lagging"][number]> = []
  for (const plan of plans) {
    for (const topic of sourceTopics(plan)) {
      const partitions = yield* memory.partitionCount(topic)
      for (let partition = 0; partition < partitions; partition++) {
        const { logStart, logEnd } = yield* memory.offsets(topic, partition)
        const committed = yield* memory.committed(groupOf(plan, topic), topic, partition)
        // A group that has committed nothing begins at the log's start, and retention may have taken everything.
        if (logEnd !== (committed ?? logStart)) lagging.push({ partition: `${topic}/${partition}`, committed, logEnd })
      }
    }
  }
  return lagging
})

const everything = Effect.fnUntraced(function* (memory: Memory, topic: string) {
  const records: Array<ConsumerRecord.ConsumerRecord> = []
  const partitions = yield* memory.partitionCount(topic)
  for (let partition = 0; partition < partitions; partition++) records.push(...(yield* memory.log(topic, partition)))
  return records
})

const textOf = ({ value }: ConsumerRecord.ConsumerRecord): string => new TextDecoder().decode(value ?? undefined)

/** The records of all dead letter topics. Two services may share one. */
export const deadLetters = Effect.fnUntraced(function* (memory: Memory, plans: ReadonlyArray<BindingPlan>) {
  const found: Array<Remains["deadLetters"][number]> = []
  for (const topic of new Set(plans.flatMap(deadLetterTopics))) {
    for (const record of yield* everything(memory, topic)) {
      const copy = Copies.read(record)
      const replays = copy === undefined ? 0 : Copies.replaysOf(copy)
      found.push({ value: textOf(record), replays, owner: copy && Copies.ownerOf(copy) })
    }
  }
  return found
})

const outputOf = (record: ConsumerRecord.ConsumerRecord): Output => ({
  partition: record.partition,
  id: textOf(record)
})

/** Writes down the outputs of a transactional binding that a reader of committed records sees now. */
export const observe = (memory: Memory, history: History, plan: BindingPlan): Effect.Effect<void> =>
  Effect.map(everything(memory, outputTopic(plan)), (records) =>
    history.add({ _tag: "Observed", binding: plan.name, outputs: records.map(outputOf) })
  )

/** Committed records that transactional handlers published. */
export const outputs = Effect.fnUntraced(function* (memory: Memory, plans: ReadonlyArray<BindingPlan>) {
  const found: Array<Remains["outputs"][number]> = []
  for (const plan of plans) {
    for (const record of yield* everything(memory, outputTopic(plan)))
      found.push({ binding: plan.name, ...outputOf(record) })
  }
  return found
})

export const describeGroup = ({
  groupId,
  generation,
  state,
  members
}: Broker.GroupDescription & { generation: number }): string => {
  const held = members.map(
    ({ memberId, assignment }) =>
      `${memberId} [${assignment.map(({ topic, partition }) => `${topic}/${partition}`).join(" ")}]`
  )
  return `${groupId} in generation ${generation} was ${state}: ${held.join(", ") || "nobody"}`
}

/** The end of a log, from an offset on. It is looked for from behind, since little was added. */
export const recordsFrom = (
  log: ReadonlyArray<ConsumerRecord.ConsumerRecord>,
  from: bigint
): ReadonlyArray<ConsumerRecord.ConsumerRecord> => {
  let first = log.length
  while (first > 0 && log[first - 1]!.offset >= from) first--
  return log.slice(first)
}

export interface StoredCopies {
  /** Finds the copies behind an append: the broker may have written a batch twice, or deduplicated it. */
  readonly read: (memory: Memory, clusterId: string, at: ConsumerRecord.TopicPartition) => Fact | undefined
  /** The topic was deleted: its offsets begin anew. */
  readonly forget: (topic: string) => void
}

export const storedCopies = (plans: ReadonlyArray<BindingPlan>): StoredCopies => {
  const ofPlans = new Set(plans.flatMap(mainTopics))
  const seen = new Map<string, bigint>()
  const read: StoredCopies["read"] = (memory, clusterId, { topic, partition }) => {
    const name = `${topic}/${partition}`
    const from = seen.get(name) ?? 0n
    const added = recordsFrom(Effect.runSync(memory.log(topic, partition, "read_uncommitted")), from)
    const end = added.at(-1)
    if (end !== undefined) seen.set(name, end.offset + 1n)
    const copies = added.flatMap((record): ReadonlyArray<StoredCopy> => {
      const copy = Copies.read(record)
      if (copy === undefined) return []
      const isMain = ofPlans.has(topic)
      // Every producer may write any headers to a main topic.
      if (isMain && !Copies.isBound(copy, record, clusterId)) return []
      const isReplay = isMain || copy.headers.has("replay-group")
      return [{ offset: record.offset, copy, isReadable: true, wasReadable: false, isReplay }]
    })
    if (copies.length === 0) return undefined
    return { _tag: "Stored", partition: name, copies }
  }
  const forget = (topic: string): void => {
    for (const name of seen.keys()) if (name.startsWith(`${topic}/`)) seen.delete(name)
  }
  return { read, forget }
}

/** Notes which copies of a partition are readable, before records of it are deleted. */
export const noteReadable = (
  entries: ReadonlyArray<Entry>,
  partition: string,
  log: ReadonlyArray<ConsumerRecord.ConsumerRecord>
): void => {
  const offsets = new Set(log.map(({ offset }) => offset))
  for (const entry of entries) {
    if (entry._tag !== "Stored" || entry.partition !== partition) continue
    for (const copy of entry.copies) copy.wasReadable ||= offsets.has(copy.offset)
  }
}

/** Marks the copies of aborted transactions, at the end of a run. */
export const markAborted = (memory: Memory, entries: ReadonlyArray<Entry>): void => {
  const readable = new Map<string, ReadonlySet<bigint>>()
  for (const entry of entries) {
    if (entry._tag !== "Stored") continue
    const slash = entry.partition.lastIndexOf("/")
    const [topic, partition] = [entry.partition.slice(0, slash), Number(entry.partition.slice(slash + 1))]
    const offsets =
      readable.get(entry.partition) ?? new Set(Effect.runSync(memory.log(topic, partition)).map(({ offset }) => offset))
    readable.set(entry.partition, offsets)
    for (const copy of entry.copies) copy.isReadable = copy.wasReadable || offsets.has(copy.offset)
  }
}
