/**
 * Writes events in the transactions of any SQL client, with promises.
 *
 * ```ts
 * import { defineTopic, Serde, standardSchema } from "@eventbus/node"
 * import { createOutbox } from "@eventbus/node/outbox"
 * import pg from "pg"
 * import { z } from "zod"
 *
 * const placed = defineTopic("orders", { key: Serde.string, value: standardSchema(z.object({ id: z.string() })) })
 * const outbox = createOutbox({ dialect: "pg" })
 *
 * export const place = async (client: pg.PoolClient, id: string) => {
 *   await client.query("BEGIN")
 *   await client.query("INSERT INTO orders (id) VALUES ($1)", [id])
 *   await outbox.write(client, { topic: placed, key: id, value: { id } })
 *   await client.query("COMMIT")
 * }
 * ```
 */
import { OutboxSchema, OutboxWriter, TxContext } from "@eventbus/outbox"
import * as Effect from "effect/Effect"
import * as Envelopes from "./internal/outbox/envelopes.ts"
import { sqlFunctionOf } from "./internal/outbox/sqlFunctionOf.ts"
import type { NamedOutboxEvent, OutboxEvent } from "./OutboxEvent.ts"
import type { OutboxTransaction } from "./OutboxTransaction.ts"

/** The options of an outbox: those of the writer of `@eventbus/outbox`. */
export interface OutboxOptions extends Omit<OutboxWriter.ForeignOptions, "codec"> {}

/** Writes events in the caller's transactions. It holds no connection and needs no end. */
export interface Outbox {
  /**
   * Writes one event, and fulfils with its id when the statements have run in the transaction. The event is published if and only if the transaction commits. Rejects before any
   * statement with `EncodeFailure` for a key or value that does not fit its topic, with `RecordRejected` for what the table cannot store, and with `PayloadTooLarge`; with
   * `NotInTransaction` where there is no open transaction; and with `OutboxStoreError`, whose `cause` is the error of the client, where the database refuses. Roll back then.
   */
  write(transaction: OutboxTransaction, event: NamedOutboxEvent): Promise<string>
  /** Writes one event for a topic with serdes. */
  write<K, V>(transaction: OutboxTransaction, event: OutboxEvent<K, V>): Promise<string>
  /** Writes several events in order, in as few statements as their sizes allow. All are encoded before the first statement. Fulfils with their ids. */
  writeAll(transaction: OutboxTransaction, events: ReadonlyArray<NamedOutboxEvent>): Promise<ReadonlyArray<string>>
  /** Writes several events for a topic with serdes. */
  writeAll<K, V>(
    transaction: OutboxTransaction,
    events: ReadonlyArray<OutboxEvent<K, V>>
  ): Promise<ReadonlyArray<string>>
}

/** Makes an outbox. Nothing is connected. Throws `InvalidOutboxConfig` or `InvalidIdentifier` for wrong options. */
export const createOutbox = (options: OutboxOptions): Outbox => {
  const writer = Effect.runSync(OutboxWriter.foreign(options))
  const writeAll = async (transaction: OutboxTransaction, events: ReadonlyArray<Envelopes.AnyEvent>) => {
    const envelopes = await Effect.runPromise(Envelopes.of(events))
    const joined = TxContext.join(sqlFunctionOf(transaction))
    return Effect.runPromise(joined.run(writer.writeAll(envelopes)))
  }
  const write = async (transaction: OutboxTransaction, event: Envelopes.AnyEvent) =>
    (await writeAll(transaction, [event]))[0]!
  return { write, writeAll } as Outbox
}

/** The statements that create the tables or bring them to the newest version, for your own migration tool. Each may be run again. Throws `InvalidIdentifier` for an illegal name. */
export const outboxStatements = (
  dialect: OutboxOptions["dialect"],
  options?: OutboxSchema.SchemaOptions
): ReadonlyArray<string> => Effect.runSync(OutboxSchema.statements(dialect, options))
