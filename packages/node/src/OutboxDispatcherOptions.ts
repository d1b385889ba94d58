/** The options of the dispatcher of a bus. */
import type { OutboxStore, PurgeScheduler } from "@eventbus/outbox"
import type { KafkaRelayOptions } from "@eventbus/outbox/KafkaRelay"
import type * as Layer from "effect/Layer"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ProducerOptions, SecretValue } from "./KafkaOptions.ts"
import type { DurationValue, Plain } from "./PlainValues.ts"

/**
 * The database of the outbox, as a URL such as `postgres://user:password@host:5432/database` or `mysql://…`, or a function that reads it before each start. The dispatcher has connections
 * of its own, at most 4. PostgreSQL needs the package `@effect/sql-pg`, MySQL and MariaDB the package `mysql2`. Or a layer of an SQL client of Effect.
 */
export type OutboxDatabase = SecretValue | Layer.Layer<SqlClient.SqlClient, unknown>

/** The options of `outboxDispatcher`. */
export interface OutboxDispatcherOptions
  extends Pick<OutboxStore.StoreOptions, "table">,
    Pick<KafkaRelayOptions, "missingTopics" | "timestamp"> {
  /** The database that the events are in. */
  readonly database: OutboxDatabase
  /** Creates the tables, or brings them to the newest version, at the start. Default false: your own migrations do, with `outboxStatements`. */
  readonly migrate?: boolean
  /** `delete`: events that Kafka has acknowledged are deleted. `keep`: they stay as DONE until `purge` removes them. Default `delete`. */
  readonly onDone?: "delete" | "keep"
  /** Removes events that are DONE or DEAD when they are old enough. Default: none is removed. */
  readonly purge?: Plain<PurgeScheduler.PurgeOptions>
  /** Longest time between two looks at the table, above 0. Default 1 second. On PostgreSQL, a write with `notify` is found at once. */
  readonly interval?: DurationValue
  /** How long a stop waits for events on their way. Above 0. Default 5 seconds. */
  readonly drainTimeout?: DurationValue
  /** How long the keys of a process wait after it died, before others deliver their events. Above 0. Default 20 seconds. */
  readonly lease?: DurationValue
  /** An event that failed so often is DEAD; events that wait for the cluster or their topic use up no attempt. 1 to 1,000,000. Default 10. */
  readonly maxAttempts?: number
  /** The alias of the cluster. Default `default`. */
  readonly cluster?: string
  /** How to publish. Default: idempotent, `acks` `all`, without compression. */
  readonly producer?: ProducerOptions
}
