/** A relay to Kafka as a process of its own: `relay.ts <schema> <topic> <brokers> <name>`. */

import { Outbox } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import { Effect, Layer } from "effect"
import * as Transport from "../../transport.ts"
import { pgIn } from "../clients.ts"

const [schema = "", topic = "", brokers = "", name = ""] = process.argv.slice(2)

const relay = Outbox.orderedNodes({
  ...KafkaRelay.orderedSettings,
  batchSize: 10,
  interval: "200 millis",
  leases: { owner: name, lease: "2 seconds" }
}).pipe(
  Layer.provide(KafkaRelay.layer({ topic })),
  Layer.provide(Transport.layer({ brokers: brokers.split(",") })),
  Layer.provide(pgIn(schema))
)
await Effect.runPromise(Effect.orDie(Layer.launch(Layer.tap(relay, () => Effect.sync(() => console.log("ready"))))))
