/** A module for `--outbox`: the store in the schema `SCHEMA`, at the port `PORT` if that is given. */
import { OutboxStore } from "@eventbus/outbox"
import { Config, Effect, Layer } from "effect"
import { pgIn, pgLogin } from "../clients.ts"

const database = Layer.unwrap(
  Effect.gen(function* () {
    const port = yield* Config.withDefault(Config.Port("PORT"), pgLogin.port)
    return pgIn(yield* Config.String("SCHEMA"), 1, { ...pgLogin, port })
  })
)

const outbox: Layer.Layer<OutboxStore.OutboxStore, unknown> = OutboxStore.layer().pipe(Layer.provide(database))

export default outbox
