/** The samples of the guide on a real Kafka: the files as they are, with topics, groups and brokers by variables. */
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Configuration, Handler, Handlers } from "@eventbus/config"
import { Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Schema } from "effect"
import * as Bus from "./bus.ts"

const sample = (name: string) => fileURLToPath(new URL(`../../packages/examples/config/${name}`, import.meta.url))

class Refused extends Schema.TaggedError<Refused>()("Refused", {}) {}
class Closed extends Schema.TaggedError<Closed>()("Closed", {}) {}

KafkaSuite.shared("configuration", (bootstrap) => {
  Bus.story(
    bootstrap,
    "CFG-08 the full sample consumes, and its names of Java classes send records where it says",
    () =>
      Effect.gen(function* () {
        const [orders, payments] = [Bus.fresh("orders"), Bus.fresh("payments")]
        const configuration = yield* Configuration.load(sample("application.yml"), {
          env: {
            EVENTBUS_CLUSTERS_DEFAULT_BROKERS: bootstrap.join(","),
            EVENTBUS_BINDINGS_ORDERS_TOPIC: orders,
            EVENTBUS_BINDINGS_ORDERS_GROUP_ID: orders,
            EVENTBUS_BINDINGS_PAYMENTS_TOPIC: payments,
            EVENTBUS_BINDINGS_PAYMENTS_GROUP_ID: payments
          }
        })
        const handled: Array<string> = []
        const alerts: Array<string> = []
        const record = (value: string) => Effect.sync(() => handled.push(value))
        const handlers = Handlers.make({
          orders: Handler.make({
            value: Serde.string,
            handler: ({ value }): Effect.Effect<unknown, Refused | Closed> =>
              value === "refused"
                ? Effect.fail(new Refused())
                : value === "closed"
                  ? Effect.fail(new Closed())
                  : record(value),
            errors: {
              Refused: [
                "com.enterprise.domain.BusinessRuleViolationException",
                "com.enterprise.schema.SchemaValidationException"
              ],
              Closed: [
                "javax.ws.rs.ServiceUnavailableException",
                "java.net.SocketTimeoutException",
                "org.springframework.dao.OptimisticLockingFailureException",
                "org.springframework.dao.TransientDataAccessException"
              ]
            },
            onDeadLetter: ({ lastExceptionClass }) => Effect.sync(() => alerts.push(lastExceptionClass))
          }),
          payments: Handler.make({ value: Serde.string, handler: ({ value }) => record(`paid ${value}`) })
        })
        yield* Bus.createTopic(orders, 3)
        yield* Bus.createTopic(payments, 2)
        yield* Bus.publish(
          ["refused", "closed", "o-1", "o-2"].map((value, index) => ({
            topic: orders,
            partition: index % 3,
            key: null,
            value: Bus.bytes(value)
          }))
        )
        yield* Bus.publish([{ topic: payments, partition: 0, key: null, value: Bus.bytes("o-1") }])
        const bindings = yield* Configuration.bindings(configuration, handlers)
        yield* Bus.on(
          configuration.clusters[0]!,
          Effect.gen(function* () {
            const app = yield* Bus.start(...bindings)
            yield* Bus.until("all that can be handled is handled", () => handled.length === 3, {
              otherwise: () => handled
            })
            assert.sameMembers(handled, ["o-1", "o-2", "paid o-1"])
            yield* Bus.until("the alert has come", () => alerts.length === 1)
            assert.deepStrictEqual(alerts, ["Refused"])
            yield* Bus.lagIsZero(orders, orders)
            assert.lengthOf(yield* Bus.readAll(`${orders}.DLT`), 1)
            assert.deepStrictEqual(
              (yield* Bus.readAll(`${orders}.retry-2`)).map(({ value }) => Bus.text(value)),
              ["closed"]
            )
            assert.isEmpty(yield* Bus.readAll(`${orders}.retry-1`))
            const snapshots = yield* app.connector.listBindings
            assert.deepStrictEqual(
              snapshots.map(({ name, state, consumers }) => [name, state, consumers.length]),
              [
                ["orders", "RUNNING", 3],
                ["payments", "RUNNING", 2]
              ]
            )
          })
        )
      }),
    120_000
  )

  Bus.story(bootstrap, "CFG-07 the minimal sample consumes", () =>
    Effect.gen(function* () {
      const topic = Bus.fresh("notifications")
      const { bindings } = yield* Configuration.load(sample("minimal.yml"), {
        env: { EVENTBUS_BINDINGS_NOTIFICATIONS_TOPIC: topic, EVENTBUS_BINDINGS_NOTIFICATIONS_GROUP_ID: topic }
      })
      yield* Bus.createTopic(topic)
      yield* Bus.publish(Bus.numbered(topic, 1, 20))
      const seen: Array<string | null> = []
      const handlers = Handlers.make({ notifications: ({ value }) => Effect.sync(() => seen.push(Bus.text(value))) })
      yield* Bus.start(...(yield* Configuration.bindings({ clusters: [], bindings }, handlers)))
      yield* Bus.lagIsZero(topic, topic)
      assert.deepStrictEqual(
        seen,
        Array.from({ length: 20 }, (_, index) => String(index))
      )
    })
  )
})
