/** Ruling 87: a pool without a connection to spare never hangs the outbox. */

import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { ListenerRegistry, MetricsExporter, Outbox } from "@eventbus/outbox"
import * as MySql2 from "@eventbus/outbox/MySql2"
import { Effect, Layer, Logger } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { mysqlLogin, pgLogin } from "../outbox/clients.ts"
import { onDatabases } from "../outbox/databases.ts"

const interval = "300 millis"
const shapes = {
  singleNode: () => Outbox.singleNode({ interval }),
  multiNode: () => Outbox.multiNode({ interval, claimLocking: { lockTimeout: "1 minute" } }),
  ordered: () => Outbox.ordered({ interval }),
  orderedNodes: () => Outbox.orderedNodes({ interval })
}

const write = (eventType: string) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(Outbox.write({ eventType, payload: 1 })))

/** Within the migrated schema: another client on the same schema, with a small pool. */
const small = (name: "PostgreSQL" | "MariaDB", kind: "pool" | "single client", maxConnections: number) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      if (name === "MariaDB") {
        const [row] = yield* sql.unsafe<{ name: string }>("SELECT DATABASE() AS name")
        return MySql2.layer({ ...mysqlLogin, database: row!.name, maxConnections })
      }
      const [row] = yield* sql.unsafe<{ name: string }>("SELECT current_schema() AS name")
      const config = { ...pgLogin, startupOptions: `-c search_path=${row!.name}` }
      return kind === "pool"
        ? PgClient.layer({ ...config, maxConnections })
        : PgClient.layerFrom(PgClient.makeClient(config)).pipe(Layer.provide(Reactivity.layer))
    })
  ).pipe(Layer.orDie)

const captured = () => {
  const lines: Array<string> = []
  const logger = Logger.layer([Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))])
  return { lines, logger }
}

const listeners = (seen: Array<string>) =>
  ListenerRegistry.layerAll((event) => Effect.sync(() => void seen.push(event.eventType)))

const until = (condition: () => boolean) =>
  Effect.repeat(Effect.sleep("20 millis"), { until: condition }).pipe(Effect.timeout("8 seconds"))

describe("C43", () => {
  onDatabases(
    "C43 pool of one connection",
    (db) => {
      const kinds = db.name === "PostgreSQL" ? (["pool", "single client"] as const) : (["pool"] as const)
      for (const kind of kinds) {
        for (const [name, shape] of Object.entries(shapes)) {
          it.live(`ruling 87, ${kind}, ${name}: builds, and delivers what is written a second later`, () => {
            const seen: Array<string> = []
            const { lines, logger } = captured()
            const outbox = shape().pipe(
              Layer.provide(listeners(seen)),
              Layer.provideMerge(small(db.name as "PostgreSQL" | "MariaDB", kind, 1)),
              Layer.provide(db.migrated),
              Layer.provideMerge(logger)
            )
            return Effect.gen(function* () {
              yield* Effect.sleep("1 second")
              yield* write("first")
              yield* until(() => seen.includes("first"))
              yield* write("second")
              yield* until(() => seen.includes("second"))
              if (db.name === "PostgreSQL") {
                assert.isTrue(
                  lines.some((line) => line.includes("no connection to spare")),
                  lines.join("\n")
                )
              }
            }).pipe(
              Effect.provide(outbox),
              Effect.provideService(MetricsExporter.Current, MetricsExporter.noop),
              Effect.timeout("15 seconds")
            )
          })
        }
      }
    },
    ["PostgreSQL", "MariaDB"]
  )

  onDatabases(
    "C43 two outboxes on a pool of two connections",
    (db) => {
      it.live("ruling 87: the second one does not take the last connection for listening", () => {
        const seen: Array<string> = []
        const { logger } = captured()
        const both = Layer.mergeAll(
          Layer.fresh(shapes.singleNode().pipe(Layer.provide(listeners(seen)))),
          Layer.effectDiscard(Layer.build(Layer.fresh(shapes.orderedNodes().pipe(Layer.provide(listeners(seen))))))
        ).pipe(
          Layer.provideMerge(small("PostgreSQL", "pool", 2)),
          Layer.provide(db.migrated),
          Layer.provideMerge(logger)
        )
        return Effect.gen(function* () {
          yield* Effect.sleep("1 second")
          yield* write("first")
          yield* until(() => seen.includes("first"))
        }).pipe(Effect.provide(both), Effect.timeout("15 seconds"))
      })
    },
    ["PostgreSQL"]
  )
})
