/**
 * The bindings of a file, `config/application.yml`, with their handlers. The file calls errors by the names of Java classes; the handlers say which of their
 * errors are meant.
 *
 *   node packages/examples/src/configuration.ts
 *   EVENTBUS_BINDINGS_PAYMENTS_CONCURRENCY=1 KAFKA_BROKERS=localhost:9092 node packages/examples/src/configuration.ts
 */
import { fileURLToPath } from "node:url"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Configuration, Handler, Handlers } from "@eventbus/config"
import { Serde } from "@eventbus/core"
import { Console, Effect, Layer, Schema } from "effect"
import * as Kafka from "./kafka.ts"

class SocketTimeout extends Schema.TaggedError<SocketTimeout>()("SocketTimeout", {}) {}
class Conflict extends Schema.TaggedError<Conflict>()("Conflict", {}) {}
class OrderRefused extends Schema.TaggedError<OrderRefused>()("OrderRefused", {}) {}
class WarehouseClosed extends Schema.TaggedError<WarehouseClosed>()("WarehouseClosed", {}) {}

const Order = Schema.Struct({ id: Schema.String, items: Schema.Int })
type Refusal = SocketTimeout | Conflict | OrderRefused | WarehouseClosed

const accept = ({ id, items }: typeof Order.Type): Effect.Effect<void, Refusal> => {
  if (items === 0) return Effect.fail(new OrderRefused())
  return items > 1000 ? Effect.fail(new WarehouseClosed()) : Console.log(`accepted ${id}`)
}

const orders = Handler.make({
  value: Serde.json(Order),
  handler: ({ value }) => accept(value),
  errors: {
    SocketTimeout: ["java.net.SocketTimeoutException"],
    Conflict: [
      "org.springframework.dao.OptimisticLockingFailureException",
      "org.springframework.dao.TransientDataAccessException"
    ],
    OrderRefused: [
      "com.enterprise.domain.BusinessRuleViolationException",
      "com.enterprise.schema.SchemaValidationException"
    ],
    WarehouseClosed: ["javax.ws.rs.ServiceUnavailableException"]
  },
  // The file's strategy is ALERT_AND_STORE.
  onDeadLetter: ({ lastExceptionClass, dltReason }) => Console.log(`alert: ${lastExceptionClass} (${dltReason})`)
})

const payments = Handler.make({
  value: Serde.json(Schema.Struct({ order: Schema.String })),
  handler: ({ value }) => Console.log(`paid ${value.order}`)
})

const file = fileURLToPath(new URL("../config/application.yml", import.meta.url))

const Main = Configuration.layerFile(file, Handlers.make({ orders, payments })).pipe(
  Layer.provide(
    Kafka.topics({
      "orders.events": [
        ["ann", { id: "o-1", items: 3 }],
        ["bob", { id: "o-2", items: 0 }], // com.enterprise.domain.BusinessRuleViolationException: not retried
        ["eve", { id: "o-3", items: 5000 }] // javax.ws.rs.ServiceUnavailableException: to tier 2 after three attempts
      ],
      "payments.events": [["ann", { order: "o-1" }]]
    })
  )
)

NodeRuntime.runMain(Layer.launch(Main))
