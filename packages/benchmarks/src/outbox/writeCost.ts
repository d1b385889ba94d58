/** The cost of a write for the caller: transactions of one insert and one event, against transactions of two plain inserts. */
import { Outbox } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Role } from "../harness/Benchmark.ts"
import { now, since } from "../harness/stopwatch.ts"
import { postgres } from "./databases.ts"

const text = "x".repeat(500)
const slices = 20

/** Alternates slices of both kinds, so that both see the same machine. Returns milliseconds per transaction, and the ratio slice by slice. */
export const writeCost: Role<Readonly<Record<"transactions", number>>> = ({ parameters }) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE orders (id bigserial PRIMARY KEY, body text NOT NULL)`
    yield* sql`CREATE TABLE audit (id bigserial PRIMARY KEY, body text NOT NULL)`
    const order = sql`INSERT INTO orders (body) VALUES (${text})`
    const withPlain = sql.withTransaction(Effect.andThen(order, sql`INSERT INTO audit (body) VALUES (${text})`))
    const event = { eventType: "OrderPlaced", aggregateType: "order", aggregateId: "1", payloadJson: text } as const
    const withEvent = sql.withTransaction(Effect.andThen(order, Outbox.write(event)))
    const perSlice = Math.ceil(parameters.transactions / slices)
    const millisOf = (one: Effect.Effect<unknown, unknown, Effect.Services<typeof withEvent>>) =>
      Effect.gen(function* () {
        const start = now()
        yield* Effect.repeat(Effect.asVoid(one), { times: perSlice - 1 })
        return since(start).millis / perSlice
      })
    yield* millisOf(withPlain)
    yield* millisOf(withEvent)
    const samples = { plain: [] as Array<number>, event: [] as Array<number>, ratio: [] as Array<number> }
    for (let slice = 0; slice < slices; slice++) {
      const plain = yield* millisOf(withPlain)
      const event = yield* millisOf(withEvent)
      samples.plain.push(plain)
      samples.event.push(event)
      samples.ratio.push(event / plain)
    }
    return samples
  }).pipe(Effect.provide(Layer.provideMerge(Outbox.writerOnly(), postgres)))
