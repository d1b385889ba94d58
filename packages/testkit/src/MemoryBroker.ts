/**
 * A Kafka cluster in memory: the `Broker` port without a network, and direct access to its state for tests.
 *
 * It models logs with offsets, groups with generations and transactions with markers. All time comes from Effect's `Clock`, so a `TestClock` drives
 * session timeouts and faults. Each `make` is a separate cluster.
 *
 * It assigns by itself, and moves each partition when its owner has released it, so `groupProtocol` changes nothing: sessions have the timeouts of their options, units go
 * together, and the older of two static members with one name is fenced, as in Kafka's classic protocol.
 */
import { Adapter, Broker, Kinds } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as FaultPlan from "./FaultPlan.ts"
import * as AdminClient from "./internal/broker/admin.ts"
import * as Cluster from "./internal/broker/cluster.ts"
import type { AcceptedCommit } from "./internal/broker/committedOffsets.ts"
import * as Consumer from "./internal/broker/consumer.ts"
import { type Inspection, make as makeInspection } from "./internal/broker/inspection.ts"
import type { Journal, JournalEntry, Settings } from "./internal/broker/kernel.ts"
import type { Connection } from "./internal/broker/network.ts"
import * as OptionKinds from "./internal/broker/optionKinds.ts"
import * as ProducerClient from "./internal/broker/producer.ts"
import * as Reader from "./internal/broker/reader.ts"
import * as TransactionalProducerClient from "./internal/broker/transactionalProducer.ts"

export type { AppendedRecord, Inspection, Usage } from "./internal/broker/inspection.ts"
export type { AcceptedCommit, Journal, JournalEntry }

/** Options of `make` and `layer`. */
export interface Options {
  /** `num.partitions`: partitions of a topic that is created without a number. Default 1. */
  readonly defaultPartitions?: number
  /** Number of brokers, which limits the replication factor. Default 3. */
  readonly brokerCount?: number
  /** `auto.create.topics.enable`. Default `off`, so that a test sees a missing topic. */
  readonly autoCreateTopics?: "off" | "on"
  /** `max.message.bytes` of a topic without its own value, in bytes. Default 1048588, as in Kafka. */
  readonly maxMessageBytes?: number
  /**
   * Rebalance protocol. `cooperative-sticky` (default, KIP-429) revokes only the partitions that move; `eager` revokes all partitions in every
   * rebalance.
   */
  readonly assignment?: "cooperative-sticky" | "eager"
  /** Maximum number of records in one fetched chunk. Default 500. */
  readonly maxRecordsPerChunk?: number
  /** `request.timeout.ms`: a client waits this long for an answer. Default 30 seconds. */
  readonly requestTimeout?: Duration.Input
  /** Duration of each kind of request. Default 0. */
  readonly latency?: Partial<Readonly<Record<FaultPlan.Operation, Duration.Input>>>
  /** Faults to inject. Default none. The plan's seed also decides every other random choice of the cluster. */
  readonly faults?: FaultPlan.FaultPlan
  /** Receives every journal entry, in order. Equal seeds give equal journals. */
  readonly onEvent?: Journal
}

/** The service of `MemoryBroker`: the port, and direct access to the cluster. */
export interface Service extends Inspection {
  /** The `Broker` port on this cluster, as a program under test uses it. */
  readonly broker: Broker.Broker["Service"]
}

/** The in-memory cluster as a service. */
export class MemoryBroker extends Context.Service<MemoryBroker, Service>()("@eventbus/testkit/MemoryBroker") {}

/** Makes a cluster that lives as long as the scope. Dies with `ConfigurationValidation` for options of another kind. */
export const make = Effect.fnUntraced(function* (options: Options = {}): Effect.fn.Return<Service, never, Scope.Scope> {
  Kinds.refuse(OptionKinds.ofCluster("MemoryBroker", options))
  const cluster = yield* Cluster.make({
    settings: settings(options),
    plan: options.faults ?? FaultPlan.none,
    onEvent: options.onEvent
  })
  return MemoryBroker.of({ broker: port(cluster), ...makeInspection(cluster) })
})

/** Provides `MemoryBroker` and core's `Broker` on one new cluster. */
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
      ["message.timestamp.after.max.ms", "9223372036854775807"],
      ["message.timestamp.before.max.ms", "9223372036854775807"],
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
  const consumer = Consumer.make(cluster)
  return {
    consumer: (options) => Effect.andThen(Adapter.checkOptions("consumer", options), consumer(options)),
    producer: (options = {}) =>
      Adapter.checkOptions("producer", options).pipe(
        Effect.andThen(connect("producer", options.clientId)),
        Effect.flatMap((connection) => ProducerClient.make(cluster, connection, ProducerClient.settings(options)))
      ),
    transactionalProducer: (options) =>
      Adapter.checkOptions("transactionalProducer", options).pipe(
        Effect.andThen(connect("producer", options.clientId)),
        Effect.flatMap((connection) => TransactionalProducerClient.make(cluster, connection, options))
      ),
    reader: (options = {}) =>
      Adapter.checkOptions("reader", options).pipe(
        Effect.andThen(connect("reader", options.clientId)),
        Effect.flatMap((connection) => Reader.make(cluster, connection, options))
      ),
    admin: Effect.map(connect("admin"), (connection) => AdminClient.make(cluster, connection))
  }
}
