/**
 * Direct access to an in-memory cluster: reads and changes its state without a client.
 */
import { type Broker, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type * as FaultPlan from "../../FaultPlan.ts"
import { describeGroup } from "./admin.ts"
import type { Cluster } from "./cluster.ts"
import type { AcceptedCommit } from "./committedOffsets.ts"
import { connectionOf } from "./consumer.ts"
import type { Connection } from "./network.ts"
import { type NewRecord, type PartitionLog, recordBytes, type TransactionMark } from "./partitionLog.ts"

/** A record that a test writes straight into a log. */
export interface AppendedRecord {
  /** Default null. */
  readonly key?: Uint8Array | null
  /** Default null, a tombstone. */
  readonly value?: Uint8Array | null
  /** Default none. */
  readonly headers?: ReadonlyArray<ConsumerRecord.Header>
  /** Epoch milliseconds. Default: now. */
  readonly timestamp?: number
  /** The codec of its batch. Default none. A client with a smaller `maxRecordBytes` than the record cannot read a compressed one. */
  readonly compression?: ConsumerRecord.Compression | undefined
}

/** Number of clients, members and timers that are alive. */
export interface Usage {
  /** Connected consumers. */
  readonly consumers: number
  /** Connected producers, transactional ones included. */
  readonly producers: number
  /** Connected readers. */
  readonly readers: number
  /** Connected admin clients. */
  readonly admins: number
  /** Members of all groups. */
  readonly members: number
  /** Timers of the broker itself, such as session expiry. */
  readonly timers: number
}

/** The operations of a test on the cluster, past every client. */
export interface Inspection {
  /** Creates a topic; dies when it cannot. `firstOffset` (default 0) is the first offset of its logs, for offsets beyond 2^53. */
  readonly createTopic: (
    topic: string,
    options?: {
      readonly partitions?: number
      readonly config?: ReadonlyMap<string, string>
      readonly firstOffset?: bigint
    }
  ) => Effect.Effect<void>
  /** Number of partitions; 0 for a topic that does not exist. */
  readonly partitionCount: (topic: string) => Effect.Effect<number>
  /** Writes records without a producer and returns the offset of the first one. */
  readonly append: (topic: string, partition: number, records: ReadonlyArray<AppendedRecord>) => Effect.Effect<bigint>
  /** Writes records of an aborted transaction, and its marker. */
  readonly appendAborted: (
    topic: string,
    partition: number,
    records: ReadonlyArray<AppendedRecord>
  ) => Effect.Effect<void>
  /** Advances the log end by `count` offsets (default 1) without records, as transaction markers do. */
  readonly appendControl: (topic: string, partition: number, count?: number) => Effect.Effect<void>
  /** Removes records and leaves holes in the offsets, as compaction does. */
  readonly compact: (
    topic: string,
    partition: number,
    remove: (record: ConsumerRecord.ConsumerRecord) => boolean
  ) => Effect.Effect<void>
  /** Applies `retention.ms` and `retention.bytes` of every topic now. Retention never runs by itself. */
  readonly enforceRetention: Effect.Effect<void>
  /** The records that a reader of this isolation level gets. Default `read_committed`. */
  readonly log: (
    topic: string,
    partition: number,
    isolation?: "read_committed" | "read_uncommitted"
  ) => Effect.Effect<ReadonlyArray<ConsumerRecord.ConsumerRecord>>
  /** Start and end of the log. */
  readonly offsets: (topic: string, partition: number) => Effect.Effect<Broker.PartitionOffsets>
  /** The stored committed offset, negative ones included; undefined when there is none. */
  readonly committed: (groupId: string, topic: string, partition: number) => Effect.Effect<bigint | undefined>
  /** Stores a committed offset without the group's checks. */
  readonly setCommitted: (groupId: string, topic: string, partition: number, offset: bigint) => Effect.Effect<void>
  /** Every commit that a group accepted, oldest first; the newest 200000 are kept. */
  readonly commits: (groupId: string) => Effect.Effect<ReadonlyArray<AcceptedCommit>>
  /** State, members and generation of a group. */
  readonly group: (groupId: string) => Effect.Effect<Broker.GroupDescription & { readonly generation: number }>
  /** The clients, members and timers that are alive now. */
  readonly usage: Effect.Effect<Usage>
  /** Applies a cluster effect now. */
  readonly inject: (effect: FaultPlan.ClusterEffect) => Effect.Effect<void>
  /** Adds a fault to the plan. It counts requests from now on. */
  readonly addFault: (fault: FaultPlan.Fault) => Effect.Effect<void>
  /** kill -9 of every client with this id, or of the client of this session: nothing that it sends arrives from now on. */
  readonly kill: (client: string | Broker.ConsumerSession) => Effect.Effect<void>
}

export const make = (cluster: Cluster): Inspection => {
  const { kernel } = cluster
  const { topics } = kernel
  const onLog = <A>(topic: string, partition: number, use: (log: PartitionLog) => A): Effect.Effect<A> =>
    Effect.suspend(() => {
      const log = topics.log(topic, partition)
      return log
        ? Effect.sync(() => use(log))
        : Effect.die(new Error(`There is no partition ${partition} of topic '${topic}'.`))
    })
  const complete = (record: AppendedRecord): NewRecord => ({
    key: record.key ?? null,
    value: record.value ?? null,
    headers: record.headers ?? [],
    timestamp: record.timestamp ?? kernel.nowMillis(),
    compression: record.compression
  })
  return {
    createTopic: (
      topic,
      { partitions = kernel.settings.defaultPartitions, config = new Map(), firstOffset = 0n } = {}
    ) =>
      Effect.suspend(() => {
        const problem = topics.create(topic, { partitions, config, firstOffset, replicationFactor: 1 })
        return problem ? Effect.die(problem) : Effect.void
      }),
    partitionCount: (topic) => Effect.sync(() => topics.partitionCount(topic)),
    append: (topic, partition, records) => onLog(topic, partition, (log) => log.append(records.map(complete))),
    appendAborted: (topic, partition, records) =>
      onLog(topic, partition, (log) => {
        const mark: TransactionMark = { state: "open" }
        log.append(records.map(complete), undefined, mark)
        mark.state = "aborted"
        log.endTransaction(mark)
      }),
    appendControl: (topic, partition, count) => onLog(topic, partition, (log) => log.appendControl(count)),
    compact: (topic, partition, remove) => onLog(topic, partition, (log) => log.compact(remove)),
    enforceRetention: Effect.sync(() => {
      for (const name of topics.names()) enforceRetention(cluster, name)
    }),
    log: (topic, partition, isolation = "read_committed") => onLog(topic, partition, (log) => log.snapshot(isolation)),
    offsets: (topic, partition) => onLog(topic, partition, ({ logStart, logEnd }) => ({ partition, logStart, logEnd })),
    committed: (groupId, topic, partition) =>
      Effect.sync(
        () => cluster.groups.get(groupId)?.offsets.entries.get(ConsumerRecord.partitionKey(topic, partition))?.offset
      ),
    setCommitted: (groupId, topic, partition, offset) =>
      Effect.sync(() =>
        cluster
          .group(groupId)
          .offsets.record({ topic, partition, offset, memberId: "test", generation: -1, metadata: "" })
      ),
    commits: (groupId) => Effect.sync(() => [...(cluster.groups.get(groupId)?.offsets.history ?? [])]),
    group: (groupId) =>
      Effect.sync(() => ({
        ...describeGroup(cluster, groupId),
        generation: cluster.groups.get(groupId)?.generation ?? 0
      })),
    usage: Effect.map(kernel.timers, (timers) => usage(cluster, timers)),
    inject: (effect) => Effect.sync(() => cluster.applyEffect(effect)),
    addFault: (fault) => Effect.sync(() => cluster.add(fault)),
    kill: (client) =>
      Effect.sync(() => {
        if (typeof client === "string") return cluster.applyEffect({ _tag: "Kill", clientId: client })
        const connection = connectionOf.get(client)
        if (connection) connection.cut = true
      })
  }
}

const usage = (cluster: Cluster, timers: number): Usage => {
  const connections = [...cluster.network.connections]
  const count = (kind: Connection["kind"]): number =>
    connections.filter((connection) => connection.kind === kind).length
  return {
    consumers: count("consumer"),
    producers: count("producer"),
    readers: count("reader"),
    admins: count("admin"),
    members: [...cluster.groups.values()].reduce((sum, group) => sum + group.members.size, 0),
    timers
  }
}

const enforceRetention = (cluster: Cluster, name: string): void => {
  const { topics, nowMillis } = cluster.kernel
  const topic = topics.get(name)
  if (!topic) return
  const setting = (key: string): number => Number(topics.setting(topic, key))
  const retentionMillis = setting("retention.ms")
  const retentionBytes = setting("retention.bytes")
  for (const log of topic.partitions) {
    const records = log.snapshot("read_uncommitted")
    if (retentionMillis >= 0) {
      const oldest = nowMillis() - retentionMillis
      const kept = records.find((record) => record.timestamp >= oldest)
      log.deleteBefore(kept?.offset ?? log.logEnd)
    }
    if (retentionBytes < 0) continue
    let bytes = 0
    const last = records.findLast((record) => {
      bytes += recordBytes(record)
      return bytes > retentionBytes
    })
    if (last) log.deleteBefore(last.offset + 1n)
  }
}
