/** The dispatcher of an outbox: publishes its events to Kafka, in order per topic and key, on any number of processes. */
import type { BusOutbox } from "./BusOutbox.ts"
import * as BackgroundDispatcher from "./internal/outbox/backgroundDispatcher.ts"
import type { OutboxDispatcherOptions } from "./OutboxDispatcherOptions.ts"

/**
 * Describes the dispatcher of a bus. `start` of the bus rejects with `ConfigurationValidation` for wrong options, and does not wait for the database: while it is away, or lacks the
 * tables, the dispatcher tries again every 1 to 10 seconds, and health says so.
 */
export const outboxDispatcher = (options: OutboxDispatcherOptions): BusOutbox => ({
  layer: BackgroundDispatcher.layer(options)
})
