/**
 * The console of the demo: another instance of the application, with the admin API around it, until Ctrl-C. New orders go on coming, and the dead letters of the scenario are there to be looked at.
 */
import { randomBytes } from "node:crypto"
import { AdminServer, Authorizer, EventBusAdmin } from "@eventbus/admin"
import { Binding, EventBusConnector } from "@eventbus/core"
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { Checkout } from "./checkout.ts"
import { Cluster } from "./cluster.ts"
import * as KeyOrder from "./keyOrder.ts"
import * as Screen from "./screen.ts"
import { arrival, binding, Payments } from "./shop.ts"
import * as Subscriptions from "./subscriptions.ts"

/** `pnpm demo --console` */
export const isWanted: boolean = process.argv.includes("--console")

const permissions = Authorizer.Permission.literals

/** Orders of the scenario have smaller numbers. */
const firstOrder = 10_000

/** Runs until it is interrupted. The incident is over: a replay of the letters that name `GatewayDown` passes. */
export const run = Effect.gen(function* () {
  const payments = yield* Payments
  yield* payments.reachAll
  const { names } = yield* Cluster
  const checkout = yield* Checkout
  const token = randomBytes(12).toString("hex")
  const instance = EventBusAdmin.layer().pipe(
    Layer.provideMerge(Binding.layer(Binding.rehearsable(binding(names), Payments.dryRun))),
    Layer.provideMerge(Binding.layer(Subscriptions.binding(names.subscriptions))),
    Layer.provideMerge(EventBusConnector.layer)
  )
  const authorizer = Authorizer.fromTokens([{ token: Redacted.make(token), name: "you", permissions }])
  const context = yield* Layer.build(AdminServer.layer(instance, { host: "127.0.0.1", port: 0, authorizer }))
  const address = HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
  yield* Effect.provideContext(KeyOrder.hold, context)
  Screen.print([
    "",
    `  The console: ${Screen.bold(`${address}/eventbus/console#token=${token}`)}`,
    `  The command line: ${Screen.bold(`EVENTBUS_TOKEN=${token} npx eventbus status --url ${address}`)}`,
    Screen.dim(
      "  The gateway is back. The dead letters of this run are there, and new orders keep coming. Ctrl-C ends it."
    ),
    Screen.dim(
      "  Binding subscriptions, Parked keys: an order of fay is held, two wait behind it. Her card works again: retry it."
    )
  ])
  for (let index = firstOrder; ; index++) yield* Effect.delay(checkout.place(arrival(index)), "1 second")
}).pipe(Effect.scoped)
