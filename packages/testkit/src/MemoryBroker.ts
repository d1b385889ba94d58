/**
 * A Kafka cluster in memory: the `Broker` port without a network, and a way behind the scenes for tests.
 *
 * A model, not a mock: logs with offsets, groups with generations, transactions with markers. Time is Effect's `Clock`, so a
 * `TestClock` drives session timeouts and faults. Each `make` is a cluster of its own.
 */
import { Broker } from "@eventbus/core"
import { Context, Duration, Effect, Layer, type Scope } from "effect"
import * as FaultPlan from "./FaultPlan.ts"
import * as AdminClient from "./internal/broker/admin.ts"
import * as Cluster from "./internal/broker/cluster.ts"
import type { AcceptedCommit } from "./internal/broker/committedOffsets.ts"
import * as Consumer from "./internal/broker/consumer.ts"
import { type Inspection, make as makeInspection } from "./internal/broker/inspection.ts"
import type { Journal, JournalEntry, Settings } from "./internal/broker/kernel.ts"
import type { Connection } from "./internal/broker/network.ts"
import * as ProducerClient from "./internal/broker/producer.ts"
import * as TransactionalProducerClient from "./internal/broker/transactionalProducer.ts"

export type { AppendedRecord, Inspection, Usage } from "./internal/broker/inspection.ts"
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

/** What `MemoryBroker` is: the port, and the way behind the scenes. */
export interface Service extends Inspection {
  readonly broker: Broker.Broker["Service"]
}

export class MemoryBroker extends Context.Service<MemoryBroker, Service>()("@eventbus/testkit/MemoryBroker") {}

/** A cluster that lives as long as the scope. */
export const make = Effect.fnUntraced(function* (options: Options = {}): Effect.fn.Return<Service, never, Scope.Scope> {
  const cluster = yield* Cluster.make({
    settings: settings(options),
    plan: options.faults ?? FaultPlan.none,
    onEvent: options.onEvent
  })
  return MemoryBroker.of({ broker: port(cluster), ...makeInspection(cluster) })
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
