/** A program as a user writes it, to be bundled: it handles one record, prints its value and ends. */
import { Binding, Serde } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import { Config, Console, Deferred, Effect, Layer } from "effect"

const program = Effect.gen(function* () {
  const broker = KafkaJs.layer({
    brokers: [yield* Config.String("BROKER")],
    ssl: { ca: yield* Config.String("CA") },
    sasl: {
      mechanism: "scram-sha-512",
      username: yield* Config.String("USERNAME"),
      password: Config.Redacted("PASSWORD")
    }
  })
  const handled = yield* Deferred.make<string>()
  const binding = Binding.make("bundled", {
    topic: yield* Config.String("TOPIC"),
    groupId: "bundled",
    value: Serde.string,
    handler: ({ value }) => Deferred.succeed(handled, value)
  })
  const consume = Layer.launch(Binding.layer(binding).pipe(Layer.provide(broker)))
  yield* Console.log(`handled: ${yield* Effect.raceFirst(Deferred.await(handled), consume)}`)
})

Effect.runPromise(program).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
