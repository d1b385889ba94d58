/**
 * Serves the console for the bindings of a file. Only `eventbus console` loads this module: it takes as long to load as all others.
 */
import { randomBytes } from "node:crypto"
import * as AdminServer from "@eventbus/admin/AdminServer"
import * as Authorizer from "@eventbus/admin/Authorizer"
import * as EventBusAdmin from "@eventbus/admin/EventBusAdmin"
import * as OutboxPort from "@eventbus/admin/OutboxPort"
import { Configuration } from "@eventbus/config"
import { Audit, Fleet } from "@eventbus/core"
import type { OutboxError } from "@eventbus/outbox"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { user } from "../audited.ts"
import * as Clusters from "../clusters.ts"
import { toFailed } from "../dlt/operator.ts"
import { CommandFailed, exitCodes } from "../failures.ts"
import { orRefused } from "../httpServer.ts"
import * as OutboxModule from "../outbox/outboxModule.ts"
import { jsonText } from "../text.ts"
import type { Options } from "./consoleOptions.ts"

/** Prints the address, and serves until it is interrupted. */
export const serve = Effect.fnUntraced(function* (
  configuration: Configuration.Configuration,
  options: Options & { readonly json: boolean }
) {
  const { outbox } = options
  if (Option.isNone(outbox)) return yield* served(configuration, options, Layer.empty)
  return yield* OutboxModule.withStore(outbox.value, (provided) =>
    Effect.flatMap(OutboxModule.outboxPackage, ({ DeadEventOperator }) =>
      served(
        configuration,
        options,
        Layer.effect(OutboxPort.OutboxPort, Effect.provideContext(DeadEventOperator.make(), provided))
      )
    )
  )
})

const served = Effect.fnUntraced(function* (
  configuration: Configuration.Configuration,
  { cluster, port, host, payload, write, json }: Options & { readonly json: boolean },
  outbox: Layer.Layer<never, OutboxError.InvalidOutboxConfig>
) {
  const clusters = yield* Clusters.layer(configuration, cluster)
  const token = payload || write ? randomBytes(24).toString("base64url") : undefined
  const number = Option.getOrElse(port, () => 0)
  const server = AdminServer.layer(program(configuration).pipe(Layer.provide([clusters, outbox])), {
    ...{ port: number, host: Option.getOrElse(host, () => "127.0.0.1"), readOnly: !write },
    ...(token === undefined ? {} : { authorizer: authorizerOf(token, write) })
  }).pipe(orRefused(`--port ${number}`))
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const { address } = Context.get(yield* Layer.build(server), HttpServer.HttpServer)
      const url = `${HttpServer.formatAddress(address)}/eventbus/console${token === undefined ? "" : `#token=${token}`}`
      yield* Console.log(json ? jsonText({ url, write, payload: token !== undefined }) : url)
      yield* Console.error(sentenceOf(token, write))
      return yield* Effect.never
    })
  ).pipe(Effect.mapError(toFailed))
})

const sentenceOf = (token: string | undefined, write: boolean): string => {
  const bearer = write
    ? "Whoever has this address may do everything"
    : token === undefined
      ? "It changes nothing and hides payloads; --payload shows them, --write lets you act"
      : "Whoever has this address may see payloads, and nobody may change anything; --write lets you act"
  return `The console looks from outside, straight on Kafka, and runs no bindings. ${bearer}. Ctrl-C ends it.`
}

/** The credential of this page alone: that of a service would be in the history of the shell. */
const authorizerOf = (token: string, write: boolean): Authorizer.Authorizer =>
  Authorizer.fromTokens([
    {
      ...{ token: Redacted.make(token), name: user() },
      permissions: write ? Authorizer.Permission.literals : ["view", "view-payload"]
    }
  ])

/** The admin service over the bindings of the file, with the fleet and the audit log that the file has. It is no process of the fleet. */
const program = (configuration: Configuration.Configuration) =>
  Layer.effectDiscard(seesSomething).pipe(
    Layer.provideMerge(EventBusAdmin.layerOutside({ bindings: Configuration.withoutHandlers(configuration) })),
    Layer.provide(configuration.fleet === undefined ? Layer.empty : Fleet.layer(configuration.fleet)),
    Layer.provide(configuration.audit === undefined ? Layer.empty : Audit.layer(configuration.audit))
  )

/** A console that sees no cluster has nothing to show. One that sees some of them shows what is wrong with the others. */
const seesSomething = Effect.gen(function* () {
  const bindings = yield* Effect.flatMap(EventBusAdmin.EventBusAdmin, ({ list }) => list)
  const problems = bindings.flatMap(({ outside }) => outside?.problem ?? [])
  const [first] = problems
  if (first !== undefined && problems.length === bindings.length)
    return yield* new CommandFailed({ message: first, code: exitCodes.unavailable })
})
