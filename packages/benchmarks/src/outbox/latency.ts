/** The time from sending the COMMIT to calling the listener, at a steady rate, in this process and in another one. */
import { ListenerRegistry, Outbox, type OutboxWriter } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Role, Round } from "../harness/Benchmark.ts"
import { wallMillis } from "../harness/stopwatch.ts"
import { postgres, postgresIn, schemaOf, withTables } from "./databases.ts"

type Parameters = Readonly<Record<"perSecond" | "seconds" | "warmup", number>>

const body = "x".repeat(500)
const idOf = (n: number): string => `e${n}`

/** The time at which the listener received each event. A duplicate does not change it. */
const recorder = () => {
  const receivedAt: Array<number> = []
  const registry = ListenerRegistry.layerAll((event) =>
    Effect.sync(() => {
      receivedAt[Number(event.eventId.slice(1))] ??= wallMillis()
    })
  )
  return { receivedAt, registry }
}

/** Writes events, one transaction each. Returns the times at which each COMMIT was sent. */
const writeSteadily: (
  parameters: Parameters
) => Effect.Effect<ReadonlyArray<number>, unknown, SqlClient.SqlClient | OutboxWriter.OutboxWriter> = Effect.fnUntraced(
  function* ({ perSecond, seconds, warmup }) {
    const sql = yield* SqlClient.SqlClient
    const sentAt: Array<number> = []
    const begin = performance.now()
    for (let n = 0; n < perSecond * (seconds + warmup); n++) {
      yield* Effect.sleep(Math.max(0, begin + (n * 1000) / perSecond - performance.now()))
      const write = Outbox.write({ eventType: "bench", eventId: idOf(n), payloadJson: body })
      yield* sql.withTransaction(Effect.tap(write, () => Effect.sync(() => sentAt.push(wallMillis()))))
    }
    return sentAt
  }
)

const latencies = (
  sentAt: ReadonlyArray<number>,
  receivedAt: ReadonlyArray<number>,
  { perSecond, warmup }: Parameters
) => {
  const missing = sentAt.findIndex((_, n) => receivedAt[n] === undefined)
  return missing < 0
    ? Effect.succeed({ millis: sentAt.map((at, n) => receivedAt[n]! - at).slice(perSecond * warmup) })
    : Effect.fail(`event ${missing} was not delivered`)
}

export const hotPath: Role<Parameters> = ({ parameters }) => {
  const { receivedAt, registry } = recorder()
  return Effect.gen(function* () {
    const sentAt = yield* writeSteadily(parameters)
    yield* Effect.sleep("1 second")
    return yield* latencies(sentAt, receivedAt, parameters)
  }).pipe(Effect.provide(Layer.provideMerge(Outbox.singleNode().pipe(Layer.provide(registry)), postgres)))
}

/** The schema that both processes of a round use. */
const schemaOfRound = ({ groupId }: Pick<Round<Parameters>, "groupId">) => groupId.replaceAll(/\W/g, "_")

/** A writer without a relay. A relay in another process learns of its events through LISTEN and NOTIFY. */
export const anotherProcess: Role<Parameters> = Effect.fnUntraced(function* (round) {
  const schema = schemaOfRound(round)
  yield* schemaOf(schema, "SCHEMA", postgresIn("public", 1))
  return yield* Effect.gen(function* () {
    const relay = yield* round.start("relay")
    yield* relay.begun
    const sentAt = yield* writeSteadily(round.parameters)
    yield* Effect.sleep("1 second")
    yield* relay.stop
    const { receivedAt = [] } = yield* relay.samples
    return yield* latencies(sentAt, receivedAt, round.parameters)
  }).pipe(Effect.provide(Layer.provideMerge(Outbox.writerOnly(), withTables(postgresIn(schema)))))
}, Effect.scoped)

/** The other process, with the relay. */
export const relay: Role<Parameters> = (round) => {
  const { receivedAt, registry } = recorder()
  return Effect.gen(function* () {
    yield* Effect.sleep("500 millis")
    round.begin()
    yield* round.stopped
    return { receivedAt }
  }).pipe(
    Effect.provide(
      Outbox.orderedNodes({ interval: "30 seconds" }).pipe(
        Layer.provide(registry),
        Layer.provide(withTables(postgresIn(schemaOfRound(round))))
      )
    )
  )
}
