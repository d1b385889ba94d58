/**
 * The outbox for code without Effect: `outbox.write` in the transactions of your SQL client, and the dispatcher that a bus starts. It needs the package `@eventbus/outbox`.
 *
 * ```ts
 * import { createEventBus } from "@eventbus/node"
 * import { createOutbox, outboxDispatcher } from "@eventbus/node/outbox"
 *
 * export const outbox = createOutbox({ dialect: "pg" })
 * export const bus = createEventBus({
 *   kafka: { brokers: ["localhost:9092"] },
 *   outbox: outboxDispatcher({ database: "postgres://shop@localhost:5432/shop" })
 * })
 * ```
 */
export { OutboxError } from "@eventbus/outbox"
export { outboxDispatcher } from "./OutboxDispatcher.ts"
export type { OutboxDatabase, OutboxDispatcherOptions } from "./OutboxDispatcherOptions.ts"
export type { EventParts, NamedOutboxEvent, OutboxEvent } from "./OutboxEvent.ts"
export type {
  DrizzleTransaction,
  KnexTransaction,
  KyselyTransaction,
  OutboxTransaction,
  PostgresJsTransaction,
  PrismaTransaction,
  QueryTransaction,
  SqlFunction
} from "./OutboxTransaction.ts"
export { createOutbox, type Outbox, type OutboxOptions, outboxStatements } from "./TransactionalOutbox.ts"
