/** A consumer with an inbox as a process of its own: `consumer.ts <schema> <topic> <brokers> <name>`. */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Inbox } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Transport from "../../transport.ts"
import { pgIn } from "../clients.ts"

const [schema = "", topic = "", brokers = ""] = process.argv.slice(2)

const binding = Binding.make("billing", {
  topic,
  groupId: `billing-${schema}`,
  value: Serde.bytes,
  autoOffsetReset: "earliest",
  retry: RetryPolicy.blocking(),
  handler: Effect.fnUntraced(function* ({ record }) {
    const eventId = KafkaRelay.eventIdOf(record) ?? "unknown"
    const sql = yield* SqlClient.SqlClient
    const inbox = yield* Inbox.Inbox
    yield* Effect.orDie(inbox.once("billing", eventId)(sql`INSERT INTO handled (event_id) VALUES (${eventId})`))
  })
})

const consumer = Binding.layer(binding).pipe(
  Layer.provide(Inbox.layer()),
  Layer.provide(Transport.layer({ brokers: brokers.split(",") })),
  Layer.provide(pgIn(schema))
)
await Effect.runPromise(Effect.orDie(Layer.launch(Layer.tap(consumer, () => Effect.sync(() => console.log("ready"))))))
