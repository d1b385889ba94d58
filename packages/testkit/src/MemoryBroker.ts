/**
 * A Kafka cluster in memory: the `Broker` port without a network, and a way behind the scenes for tests.
 *
 * A model, not a mock: logs with offsets, groups with generations, transactions with markers. Time is Effect's `Clock`, so a
 * `TestClock` drives session timeouts and faults. Each `make` is a cluster of its own.
 */
import { Broker, type ConsumerRecord } from "@eventbus/core"
import { Context, Duration, Effect, Layer, type Scope } from "effect"
import * as FaultPlan from "./FaultPlan.ts"
import * as AdminClient from "./internal/admin.ts"
import * as Cluster from "./internal/cluster.ts"
import type { AcceptedCommit } from "./internal/committedOffsets.ts"
import * as Consumer from "./internal/consumer.ts"
import * as Inspection from "./internal/inspection.ts"
import type { Journal, JournalEntry, Settings } from "./internal/kernel.ts"
import type { Connection } from "./internal/network.ts"
import * as ProducerClient from "./internal/producer.ts"
import * as TransactionalProducerClient from "./internal/transactionalProducer.ts"

export type { AcceptedCommit, Journal, JournalEntry }

export interface Options {
  /** `num.partitions`: of a topic that does not say. Default 1. */
  readonly defaultPartitions?: number
  /** Bounds the replication factor. Default 3. */
  readonly brokerCount?: number
  /** `auto.create.topics.enable`. Default `off`: a missing topic must be seen, not made. */
  readonly autoCreateTopics?: "off" | "on"
  /** `max.message.bytes` of topics that do not say, in bytes. Default 1048588, as Kafka's. */
  readonly maxMessageBytes?: number
  /**
   * How partitions move. `cooperative-sticky` (default, KIP-429): only what has to move is given up. `eager`: every rebalance
   * revokes everything and assigns it again.
   */
  readonly assignment?: "cooperative-sticky" | "eager"
  /** Most records in one chunk. Default 500. */
  readonly maxRecordsPerChunk?: number
  /** `request.timeout.ms`: how long a client waits for an answer. Default 30 seconds. */
  readonly requestTimeout?: Duration.Input
  /** How long each kind of request takes. Default 0. */
  readonly latency?: Partial<Readonly<Record<FaultPlan.Operation, Duration.Input>>>
  /** What goes wrong. Default: nothing. Its seed also decides every other choice left to chance. */
  readonly faults?: FaultPlan.FaultPlan
  /** Called with everything that happens, in order; equal seeds give equal journals. */
  readonly onEvent?: Journal
}

/** A record that a test writes straight into a log. */
export interface NewRecord {
  readonly key?: Uint8Array | null
  readonly value?: Uint8Array | null
  readonly headers?: ReadonlyArray<ConsumerRecord.Header>
  /** Epoch milliseconds; default: now. */
  readonly timestamp?: number
}

/** How much the cluster keeps alive at the moment. */
export interface Usage {
  readonly consumers: number
  readonly producers: number
  readonly admins: number
  /** Members of all groups. */
  readonly members: number
  /** Timers of the broker itself, such as session expiry. */
  readonly timers: number
}

export class MemoryBroker extends Context.Service<
  MemoryBroker,
  {
    readonly broker: Broker.Broker["Service"]
    /** Creates a topic; dies when it cannot. `firstOffset` (default 0) is where its logs begin, for offsets beyond 2^53. */
    readonly createTopic: (
      topic: string,
      options?: {
        readonly partitions?: number
        readonly config?: ReadonlyMap<string, string>
        readonly firstOffset?: bigint
      }
    ) => Effect.Effect<void>
    /** Writes records without a producer; the answer is the offset of the first. */
    readonly append: (topic: string, partition: number, records: ReadonlyArray<NewRecord>) => Effect.Effect<bigint>
    /** Writes records of a transaction that was aborted, and its marker. */
    readonly appendAborted: (topic: string, partition: number, records: ReadonlyArray<NewRecord>) => Effect.Effect<void>
    /** Takes `count` offsets (default 1) without records, as transaction markers do. */
    readonly appendControl: (topic: string, partition: number, count?: number) => Effect.Effect<void>
    /** Removes records and leaves holes in the offsets, as compaction does. */
    readonly compact: (
      topic: string,
      partition: number,
      remove: (record: ConsumerRecord.ConsumerRecord) => boolean
    ) => Effect.Effect<void>
    /** Applies `retention.ms` and `retention.bytes` of every topic now; nothing does it by itself. */
    readonly enforceRetention: Effect.Effect<void>
    /** Records that a `read_committed` reader would get. */
    readonly log: (
      topic: string,
      partition: number,
      isolation?: "read_committed" | "read_uncommitted"
    ) => Effect.Effect<ReadonlyArray<ConsumerRecord.ConsumerRecord>>
    readonly offsets: (topic: string, partition: number) => Effect.Effect<Broker.PartitionOffsets>
    /** The committed offset as it is kept, negative ones included; undefined when there is none. */
    readonly committed: (groupId: string, topic: string, partition: number) => Effect.Effect<bigint | undefined>
    /** Writes a committed offset whatever the group thinks of it. */
    readonly setCommitted: (groupId: string, topic: string, partition: number, offset: bigint) => Effect.Effect<void>
    /** Every commit that a group accepted, oldest first (the newest 200000). */
    readonly commits: (groupId: string) => Effect.Effect<ReadonlyArray<AcceptedCommit>>
    readonly group: (groupId: string) => Effect.Effect<Broker.GroupDescription & { readonly generation: number }>
    readonly usage: Effect.Effect<Usage>
    /** Makes a cluster effect happen now. */
    readonly inject: (effect: FaultPlan.ClusterEffect) => Effect.Effect<void>
    /** Adds a fault to the plan; its counting starts now. */
    readonly addFault: (fault: FaultPlan.Fault) => Effect.Effect<void>
    /** kill -9 of every client with this id, or of the client under this session: nothing that it sends arrives any more. */
    readonly kill: (client: string | Broker.ConsumerSession) => Effect.Effect<void>
  }
>()("@eventbus/testkit/MemoryBroker") {}

/** A cluster that lives as long as the scope. */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<MemoryBroker["Service"], never, Scope.Scope> {
  const cluster = yield* Cluster.make({
    settings: settings(options),
    plan: options.faults ?? FaultPlan.none,
    onEvent: options.onEvent
  })
  return MemoryBroker.of({ broker: port(cluster), ...Inspection.make(cluster) })
})

/** `MemoryBroker` and core's `Broker` on one cluster. */
export const layer = (options: Options = {}): Layer.Layer<MemoryBroker | Broker.Broker> =>
  Layer.effectContext(
    Effect.map(make(options), (memory) =>
      Context.make(MemoryBroker, memory).pipe(Context.add(Broker.Broker, memory.broker))
    )
  )

const settings = (options: Options): Settings => {
  const latency = (operation: FaultPlan.Operation): number => Duration.toMillis(options.latency?.[operation] ?? 0)
  return {
    defaultPartitions: options.defaultPartitions ?? 1,
    brokerCount: options.brokerCount ?? 3,
    autoCreateTopics: options.autoCreateTopics ?? "off",
    assignment: options.assignment ?? "cooperative-sticky",
    maxRecordsPerChunk: options.maxRecordsPerChunk ?? 500,
    requestTimeoutMillis: Duration.toMillis(options.requestTimeout ?? "30 seconds"),
    latencyMillis: {
      join: latency("join"),
      heartbeat: latency("heartbeat"),
      fetch: latency("fetch"),
      commit: latency("commit"),
      produce: latency("produce"),
      sendOffsets: latency("sendOffsets"),
      endTransaction: latency("endTransaction"),
      admin: latency("admin")
    },
    topicDefaults: new Map([
      ["cleanup.policy", "delete"],
      ["max.message.bytes", String(options.maxMessageBytes ?? 1_048_588)],
      ["message.timestamp.type", "CreateTime"],
      ["min.insync.replicas", "1"],
      ["retention.bytes", "-1"],
      ["retention.ms", "604800000"]
    ])
  }
}

const port = (cluster: Cluster.Cluster): Broker.Broker["Service"] => {
  const connect = (kind: Connection["kind"], clientId?: string): Effect.Effect<Connection, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.sync(() => cluster.network.connect(cluster.clientId(clientId), kind)),
      (connection) => Effect.sync(() => cluster.network.disconnect(connection))
    )
  return {
    consumer: Consumer.make(cluster),
    producer: (options = {}) =>
      Effect.flatMap(connect("producer", options.clientId), (connection) =>
        ProducerClient.make(cluster, connection, ProducerClient.settings(options))
      ),
    transactionalProducer: (options) =>
      Effect.flatMap(connect("producer", options.clientId), (connection) =>
        TransactionalProducerClient.make(cluster, connection, options)
      ),
    admin: Effect.map(connect("admin"), (connection) => AdminClient.make(cluster, connection))
  }
}
