/** An outbox in a file, as the module `programs/outbox.ts` opens it. */
import { EventEnvelope, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer } from "effect"

/** The store in a database file, with its tables. */
export const storeIn = (filename: string) =>
  OutboxStore.layer().pipe(
    Layer.provideMerge(Layer.effectDiscard(OutboxSchema.migrate())),
    Layer.provide(NodeSqlite.layer({ filename })),
    Layer.orDie
  )

/** Stores events of type `Placed` that died of these errors: `e-0`, `e-1` and so on. */
export const storeDead = Effect.fnUntraced(function* (errors: ReadonlyArray<string>) {
  const store = yield* OutboxStore.OutboxStore
  for (const [index, error] of errors.entries()) {
    const eventId = `e-${index}`
    const aggregate = { aggregateType: "order", aggregateId: `${index}` }
    yield* store.insertNew([yield* EventEnvelope.make({ eventType: "Placed", eventId, ...aggregate, payload: 1 })])
    yield* store.markDead(eventId, error)
  }
})
