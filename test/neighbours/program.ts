/**
 * One process of an application, with whatever version of the packages its folder resolves: the first one or this one. It uses only what both versions have. Each step is a
 * line of its journal before it goes on, so a process that dies by kill -9 has written every step that it took.
 */
import { openSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { PgClient } from "@effect/sql-pg"
import { Binding, CurrentTransaction, EventBusConnector, RetryPolicy, Route, Serde } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import { Outbox, OutboxSchema, OutboxWriter, SqlIdempotencyStore } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import { Data, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

/** The instructions, as JSON in the variable TASK. */
interface Task {
  readonly brokers: ReadonlyArray<string>
  readonly journal: string
  /** Topics and groups begin with it. */
  readonly name: string
  readonly login: Record<string, unknown>
  readonly schema: string
  /** `migrate`: only makes the tables. `once`: only the binding with idempotency, which does not commit within the test. `all`: the others. */
  readonly work: "migrate" | "once" | "all"
}

const task: Task = JSON.parse(process.env["TASK"] ?? "{}")
const file = openSync(task.journal, "a")
const write = (entry: object): void => void writeSync(file, `${JSON.stringify(entry)}\n`)
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const { name } = task

const membership = { sessionTimeout: 6_000, heartbeatInterval: 500 } as const

class Failed extends Data.TaggedError("Failed")<{ readonly message: string }> {}

/** Values say where their record succeeds: `7:retry-1` in the first tier, `7:dead` only after a replay, `7` at once. */
const isDue = (value: string, topic: string, isReplayed: boolean): boolean => {
  const where = value.split(":")[1]
  if (where === undefined) return true
  return where === "dead" ? isReplayed : topic.endsWith(where)
}

const main = Binding.make(name, {
  ...{ topic: name, groupId: name, value: Serde.string, ...membership },
  retry: RetryPolicy.tiered({
    blocking: { maxAttempts: 1 },
    tiers: [
      { delay: "1 second", maxAttempts: 1 },
      { delay: "2 seconds", maxAttempts: 1 }
    ]
  }),
  onError: () => Route.retry,
  handler: ({ record, value }) =>
    Effect.gen(function* () {
      const isReplayed = record.headers.some(({ key }) => key === "x-eventbus-replay-count")
      yield* Effect.sleep("3 millis")
      if (!isDue(value, record.topic, isReplayed)) return yield* Effect.fail(new Failed({ message: value }))
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      yield* sql.withTransaction(writer.write({ eventType: `${name}-events`, payload: value }))
      write({ done: value })
    })
})

const copier = Binding.makeTransactional(`${name}-copier`, {
  // The transaction that a killed process leaves open ends soon: its timeout is made of this.
  ...{ topic: `${name}-tx`, groupId: `${name}-tx`, value: Serde.string, maxPollInterval: 30_000, ...membership },
  onError: () => Route.retry,
  handler: ({ value }) =>
    Effect.andThen(
      CurrentTransaction.send({ topic: `${name}-copies`, key: null, value: bytes(value) }),
      Effect.sync(() => write({ copied: value }))
    )
})

const once = Binding.make(`${name}-once`, {
  ...{ topic: `${name}-once`, groupId: `${name}-once`, value: Serde.string, ...membership },
  ...{ ackMode: "MANUAL", commitInterval: 600_000, idempotency: {}, retry: RetryPolicy.none },
  handler: ({ value }) => Effect.sync(() => write({ once: value }))
})

const replays = Layer.effectDiscard(
  Effect.flatMap(EventBusConnector.EventBusConnector, ({ deadLetters }) =>
    Effect.flatMap(deadLetters(name), ({ replay }) => replay(20)).pipe(
      Effect.tap((report) => Effect.sync(() => write({ replay: report }))),
      Effect.catchCause(() => Effect.void),
      Effect.andThen(Effect.sleep("2 seconds")),
      Effect.forever,
      Effect.forkScoped
    )
  )
)

const stuck = Layer.effectDiscard(
  Effect.flatMap(EventBusConnector.EventBusConnector, ({ subscribe }) =>
    subscribe((event) => {
      if (event._tag === "SessionCrashed") write({ crash: event.error.message })
    })
  )
)

const kafka = KafkaJs.layer({ brokers: task.brokers })
const database = PgClient.layer({
  ...task.login,
  maxConnections: 4,
  startupOptions: `-c search_path=${task.schema}`
} as never)

const outbox = Outbox.multiNode({ claimLocking: { lockTimeout: "5 seconds" }, interval: "500 millis" }).pipe(
  Layer.provide(KafkaRelay.layer()),
  Layer.provideMerge(kafka),
  Layer.provideMerge(database)
)

const migrate = Effect.andThen(OutboxSchema.migrate(), SqlIdempotencyStore.migrate()).pipe(Effect.provide(database))

const programs = {
  all: Layer.launch(
    Layer.mergeAll(replays, stuck).pipe(
      Layer.provideMerge(Layer.mergeAll(Binding.layer(main), Binding.layer(copier))),
      Layer.provide(outbox)
    )
  ),
  once: Layer.launch(
    Binding.layer(once).pipe(Layer.provide(SqlIdempotencyStore.layer()), Layer.provide(database), Layer.provide(kafka))
  ),
  migrate
}

NodeRuntime.runMain(programs[task.work] as Effect.Effect<unknown, unknown>)
