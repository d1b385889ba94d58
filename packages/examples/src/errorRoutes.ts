/**
 * Errors decide the route of a record: it is retried, dead-lettered or dropped, or it waits while the binding pauses.
 *
 *   node packages/examples/src/errorRoutes.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding } from "@eventbus/core"
import { Console, Effect, Layer } from "effect"
import { AlreadyCharged, CardDeclined, charging, Gateway, GatewayDown, KeyRevoked } from "./charging.ts"
import * as Kafka from "./kafka.ts"

const FakeGateway = Layer.sync(Gateway, () => {
  const calls = new Map<string, number>()
  return {
    charge: ({ id }) => {
      const call = (calls.get(id) ?? 0) + 1
      calls.set(id, call)
      if (id === "hiccup" && call < 3) return Effect.fail(new GatewayDown({ status: 503 }))
      if (id === "declined") return Effect.fail(new CardDeclined({ code: "insufficient funds" }))
      if (id === "repeated") return Effect.fail(new AlreadyCharged({ id }))
      if (id === "revoked") return Effect.fail(new KeyRevoked())
      return Console.log(`charged ${id} with call ${call}`)
    }
  }
})

const order = (id: string): Kafka.Sample => [id, { id, amount: 20 }]

const Main = Binding.layer(charging).pipe(
  Layer.provide(FakeGateway),
  Layer.provide(
    Kafka.layer("orders", ["plain", "hiccup", "declined", "repeated", "last", "revoked", "behind"].map(order))
  )
)

NodeRuntime.runMain(Layer.launch(Main))
