/** From the COMMIT being sent to the listener being called, at a steady rate, in this process and in another client's relay. */
import { ListenerRegistry, Outbox, OutboxWriter } from "@eventbus/outbox"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { freshSchema, type Quantiles, quantiles } from "./setup.ts"

const perSecond = 200
const warmUp = 100

/** Writes events one transaction each and waits for all of them to be seen. */
const measure = (events: number, sentAt: Map<string, number>, latencies: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const begin = performance.now()
    for (let n = 0; n < events; n++) {
      const eventId = `e${n}`
      yield* Effect.sleep(Math.max(0, begin + (n * 1000) / perSecond - performance.now()))
      const write = Outbox.write({ eventType: "bench", eventId, payloadJson: "x".repeat(500) })
      yield* sql.withTransaction(Effect.tap(write, () => Effect.sync(() => sentAt.set(eventId, performance.now()))))
    }
    yield* Effect.sleep("10 millis").pipe(
      Effect.repeat({ until: () => latencies.length === events }),
      Effect.timeout("10 seconds")
    )
    return quantiles(latencies.slice(warmUp))
  })

const recording = (sentAt: Map<string, number>, latencies: Array<number>) =>
  ListenerRegistry.layerAll((event) =>
    Effect.sync(() => latencies.push(performance.now() - sentAt.get(event.eventId)!))
  )

/** The hot path of one process. */
export const hotPath = (events: number): Effect.Effect<Quantiles, unknown> => {
  const sentAt = new Map<string, number>()
  const latencies: Array<number> = []
  return measure(events, sentAt, latencies).pipe(
    Effect.provide(
      Layer.provideMerge(
        Outbox.singleNode().pipe(Layer.provide(recording(sentAt, latencies))),
        Layer.fresh(freshSchema)
      )
    )
  )
}

/** A writer without a relay, and a relay that hears of it through LISTEN and NOTIFY. */
export const wokenUp = (events: number): Effect.Effect<Quantiles, unknown> => {
  const sentAt = new Map<string, number>()
  const latencies: Array<number> = []
  const relay = Outbox.orderedNodes({ interval: "30 seconds" }).pipe(Layer.provide(recording(sentAt, latencies)))
  return Effect.gen(function* () {
    yield* Layer.build(relay)
    yield* Effect.sleep("500 millis")
    const writer = yield* Layer.build(Layer.fresh(Outbox.writerOnly()))
    return yield* Effect.provideService(
      measure(events, sentAt, latencies),
      OutboxWriter.OutboxWriter,
      Context.get(writer, OutboxWriter.OutboxWriter)
    )
  }).pipe(Effect.scoped, Effect.provide(Layer.fresh(freshSchema)))
}
