/** Connections that take no writes any more, as after a failover: recognised, given up and made anew; health and log say so. */
import { assert, describe, it } from "@effect/vitest"
import { ListenerRegistry, MetricsExporter, Outbox, OutboxHealth } from "@eventbus/outbox"
import { Effect, Layer, Logger, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { isReadOnlyRefusal } from "../../packages/outbox/src/internal/base/readOnlyRefusal.ts"
import { onDatabases } from "./databases.ts"

const interval = "200 millis"
const spaced = Schedule.spaced("100 millis")
const shapes = {
  singleNode: () => Outbox.singleNode({ interval }),
  multiNode: () => Outbox.multiNode({ interval, claimLocking: { lockTimeout: "1 minute" } }),
  ordered: () => Outbox.ordered({ interval }),
  orderedNodes: () => Outbox.orderedNodes({ interval, leases: { lease: "3 seconds" } })
}

/** Makes every connection that the pool has now read-only, as on a server that was demoted. New connections take writes. */
const demote = (isPostgres: boolean, connections: number) =>
  SqlClient.SqlClient.use((sql) =>
    Effect.scoped(
      Effect.gen(function* () {
        const all = yield* Effect.forEach(Array.from({ length: connections }), () => sql.reserve, {
          concurrency: "unbounded"
        })
        const text = isPostgres
          ? "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"
          : "SET SESSION TRANSACTION READ ONLY"
        for (const connection of all) yield* connection.executeUnprepared(text, [], undefined)
      })
    )
  )

const write = (eventType: string) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(Outbox.write({ eventType, payload: 1 })))

const health = OutboxHealth.OutboxHealth.use((service) => service.check)

onDatabases(
  "connections that take no writes",
  (db) => {
    for (const [name, shape] of Object.entries(shapes)) {
      it.live(`${name}: the refused write fails, the connections are made anew, and the outbox goes on`, () => {
        const seen: Array<string> = []
        const lines: Array<string> = []
        const logger = Logger.layer([
          Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))
        ])
        const registry = ListenerRegistry.layerAll((event) => Effect.sync(() => void seen.push(event.eventType)))
        return Effect.gen(function* () {
          yield* write("before")
          yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => seen.includes("before") })
          // One connection of PostgreSQL's pool of six listens.
          yield* demote(db.name === "PostgreSQL", db.name === "PostgreSQL" ? 5 : 6)
          const first = yield* Effect.exit(write("refused"))
          assert.strictEqual(first._tag, "Failure")
          assert.isTrue((yield* health).problems.some(({ source }) => source === "database"))
          yield* Effect.retry(write("after"), { schedule: spaced, times: 40 })
          yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => seen.includes("after") })
          yield* Effect.repeat(health, { schedule: spaced, until: ({ status }) => status === "up" })
          assert.isFalse(seen.includes("refused"))
          assert.isTrue(
            lines.some((line) => line.includes("takes no writes")),
            lines.join("\n")
          )
        }).pipe(
          Effect.timeout("20 seconds"),
          Effect.provide(
            shape().pipe(Layer.provide(registry), Layer.provideMerge(db.migrated), Layer.provideMerge(logger))
          ),
          Effect.provideService(MetricsExporter.Current, MetricsExporter.noop)
        )
      })
    }
  },
  ["PostgreSQL", "MariaDB"]
)

describe("the refusals of drivers", () => {
  it("are recognised by code and number, as deep as drivers wrap them", () => {
    const withFields = (fields: object) => Object.assign(new Error("refused"), fields)
    const option = "The MariaDB server is running with the --read-only option so it cannot execute this statement"
    for (const error of [
      withFields({ code: "25006" }),
      { _tag: "SqlError", reason: { _tag: "UnknownError", cause: withFields({ code: "25006" }) } },
      withFields({ errno: 1836 }),
      withFields({ code: "ER_READ_ONLY_MODE" }),
      withFields({ errno: 1290, message: option }),
      withFields({ errno: 1792 }),
      new Error("wrapped", { cause: withFields({ code: "ER_OPTION_PREVENTS_STATEMENT", message: option }) })
    ]) {
      assert.isTrue(isReadOnlyRefusal(error))
    }
    const cyclic = new Error("cyclic")
    cyclic.cause = cyclic
    for (const error of [
      undefined,
      "25006",
      cyclic,
      withFields({ code: "25001" }),
      withFields({ errno: 1290, message: "running with the --secure-file-priv option" })
    ]) {
      assert.isFalse(isReadOnlyRefusal(error))
    }
  })
})
