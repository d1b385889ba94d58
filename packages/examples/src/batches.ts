/**
 * A handler that gets a whole batch per call, and says which records of it failed.
 *
 *   node packages/examples/src/batches.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, EventBusError, RetryPolicy, Serde } from "@eventbus/core"
import { Array, Console, Effect, Layer, Schema } from "effect"
import * as Kafka from "./kafka.ts"

const Reading = Schema.Struct({ sensor: Schema.String, celsius: Schema.Finite })
type Reading = typeof Reading.Type

/** One statement for many rows. Returns the rows that the database refused. */
const insertAll = (rows: ReadonlyArray<Reading>) =>
  Effect.as(
    Console.log(`insert ${rows.map(({ sensor, celsius }) => `${sensor}=${celsius}`).join(" ")}`),
    rows.flatMap(({ celsius }, index) => (celsius < -273.15 ? [{ index, error: new Error("colder than cold") }] : []))
  )

const readings = Binding.makeBatch("readings", {
  topic: "readings",
  groupId: "weather",
  value: Serde.json(Reading),
  maxPollRecords: 4,
  retry: RetryPolicy.none,
  handleBatch: ({ deliveries }) =>
    Effect.gen(function* () {
      const refused = yield* insertAll(deliveries.map(({ value }) => value))
      // All other records are done. Only these are redelivered, and dead-lettered once their attempts are used up.
      if (Array.isReadonlyArrayNonEmpty(refused)) return yield* EventBusError.BatchProcessing.these(refused)
    })
})

const Main = Binding.layer(readings).pipe(
  Layer.provide(
    Kafka.layer(
      "readings",
      [4, 5, -300, 6, 7, 8].map((celsius, index): Kafka.Sample => ["roof", { sensor: `s${index}`, celsius }])
    )
  )
)

NodeRuntime.runMain(Layer.launch(Main))
