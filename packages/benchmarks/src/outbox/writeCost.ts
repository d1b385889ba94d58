/** What a write costs the caller: transactions of one insert and one event, against transactions of two plain inserts. */
import { Outbox } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { freshSchema, rate } from "./setup.ts"

const text = "x".repeat(500)

/** Transactions per second of each kind, taken in turn so that both see the same machine. */
export const writeCost = (
  transactions: number
): Effect.Effect<{ readonly plain: number; readonly event: number }, unknown> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE orders (id bigserial PRIMARY KEY, body text NOT NULL)`
    yield* sql`CREATE TABLE audit (id bigserial PRIMARY KEY, body text NOT NULL)`
    const order = sql`INSERT INTO orders (body) VALUES (${text})`
    const withPlain = sql.withTransaction(Effect.andThen(order, sql`INSERT INTO audit (body) VALUES (${text})`))
    const withEvent = sql.withTransaction(
      Effect.andThen(
        order,
        Outbox.write({ eventType: "OrderPlaced", aggregateType: "order", aggregateId: "1", payloadJson: text })
      )
    )
    const many = (one: Effect.Effect<unknown, unknown, Effect.Services<typeof withEvent>>, times: number) =>
      Effect.repeat(Effect.asVoid(one), { times: times - 1 })
    yield* many(withPlain, 200)
    yield* many(withEvent, 200)
    const slices = 10
    const [plain, event]: [Array<number>, Array<number>] = [[], []]
    for (let i = 0; i < slices; i++) {
      plain.push(yield* rate(transactions / slices, many(withPlain, transactions / slices)))
      event.push(yield* rate(transactions / slices, many(withEvent, transactions / slices)))
    }
    const middle = (values: ReadonlyArray<number>) => values.toSorted((a, b) => a - b)[slices / 2]!
    return { plain: middle(plain), event: middle(event) }
  }).pipe(Effect.provide(Layer.provideMerge(Outbox.writerOnly(), Layer.fresh(freshSchema))))
