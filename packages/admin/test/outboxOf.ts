/** An outbox on a database in memory, whose events somebody has marked as dead. */
import { OutboxPort } from "@eventbus/admin"
import { DeadEventOperator, EventEnvelope, OutboxSchema, OutboxStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Context, Effect, Layer } from "effect"

const store = Layer.orDie(OutboxStore.layer()).pipe(
  Layer.provideMerge(Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate()))),
  Layer.provide(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

/** As a program gives its outbox to the admin API. */
const program = Layer.effect(OutboxPort.OutboxPort, DeadEventOperator.make()).pipe(
  Layer.orDie,
  Layer.provideMerge(store)
)

interface Written extends Partial<EventEnvelope.Input> {
  readonly eventId: string
  /** The text of its last error. */
  readonly error?: string
}

/** The operator, and what a writer and a dispatcher do with the outbox. It lives as long as the scope. */
export const make = Effect.gen(function* () {
  const context = yield* Layer.build(Layer.fresh(program))
  const events = Context.get(context, OutboxStore.OutboxStore)
  const die = Effect.fnUntraced(function* ({ error = "Refused: order 17 is closed", ...event }: Written) {
    const envelope = yield* EventEnvelope.make({
      ...{ eventType: "Placed", aggregateType: "order", aggregateId: "o-1" },
      ...(event.payloadBytes === undefined ? { payload: {} } : {}),
      ...event
    })
    yield* events.insertNew([envelope])
    yield* events.markDead(event.eventId, error)
  })
  return { outbox: Context.get(context, OutboxPort.OutboxPort), store: events, die }
})
