/** The options of a bus. */
import type { Audit, Broker, EventBusConnector, EventBusEvent, Fleet, IdempotencyStore } from "@eventbus/core"
import type * as Layer from "effect/Layer"
import type { BusOutbox } from "./BusOutbox.ts"
import type { Consumer } from "./Consumer.ts"
import type { SharedSettings } from "./ConsumerOptions.ts"
import type { KafkaConnection, KafkaOptions, ProducerOptions } from "./KafkaOptions.ts"
import type { Plain } from "./PlainValues.ts"

/** A line of the log. */
export interface LogEntry {
  /** How serious it is. */
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal"
  /** The message. */
  readonly message: string
  /** When it was written. */
  readonly time: Date
  /** The error of the line. Undefined without one. */
  readonly error: unknown
  /** The record and the consumer that it is about, such as `topic`, `partition`, `offset` and `bindingName`, and whatever else the line names. */
  readonly annotations: { readonly [name: string]: unknown }
}

/** The options of `createEventBus`. */
export interface EventBusOptions {
  /** The Kafka cluster, which has the alias `default`. */
  readonly kafka?: KafkaOptions | KafkaConnection
  /** Further clusters by alias, for consumers with `cluster` and for `publish`. Default: none. */
  readonly clusters?: { readonly [alias: string]: KafkaOptions | KafkaConnection }
  /** Consumers by name. The name stands in logs, metrics and health, and commands take it. Default: none, for a program that only publishes. */
  readonly consumers?: { readonly [name: string]: Consumer }
  /** Settings of all consumers; each consumer's own win. Default: those of each setting. */
  readonly defaults?: SharedSettings
  /** How to publish. Default: idempotent, `acks` `all`, without compression. */
  readonly producer?: ProducerOptions
  /** The store of consumers with `idempotency`: `memory` for one process, or the layer of a store, such as `RedisIdempotencyStore.layer({ host })`. Default: none. */
  readonly idempotencyStore?: "memory" | Layer.Layer<IdempotencyStore.IdempotencyStore, unknown>
  /** The dispatcher of an outbox, which `outboxDispatcher` of `@eventbus/node/outbox` makes: the bus starts it, shows it in its health, and stops it behind its consumers. Default: none. */
  readonly outbox?: BusOutbox
  /** The fleet that the process joins. `{}` has the defaults. Default: none. */
  readonly fleet?: Plain<Partial<Fleet.Settings>>
  /** The audit log of operators' actions. `{}` has the defaults. Default: none. */
  readonly audit?: Plain<Partial<Audit.Settings>>
  /**
   * Signals that stop the bus, once: running handlers end, offsets are committed, the groups are left. Then the process ends by the signal, unless the program listens to it as
   * well. A second signal ends the process at once. An empty list leaves signals to the program. Default `["SIGTERM", "SIGINT"]`.
   */
  readonly signals?: ReadonlyArray<NodeJS.Signals>
  /** The log: lines of text, JSON, nothing, or a function that gets each line. Default `text`, to standard output. */
  readonly log?: "text" | "json" | "off" | ((entry: LogEntry) => void)
  /** Called at once with everything that happens. It must be quick. Default: none. */
  readonly onEvent?: (event: EventBusEvent.EventBusEvent) => void
  /** A layer of Effect over the connector, such as `EventBusAdmin.layer`, built behind the consumers and closed before them. Default: none. */
  readonly extension?: Layer.Layer<never, unknown, EventBusConnector.EventBusConnector | Broker.Broker>
}
