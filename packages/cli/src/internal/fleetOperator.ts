/**
 * The operations on a fleet, straight on its cluster or by the admin API of a running process. Both answer what the API answers, so that every command prints the same.
 */
import { hostname, userInfo } from "node:os"
import * as AnswersOf from "@eventbus/admin/AnswersOf"
import type * as FleetAnswers from "@eventbus/admin/FleetAnswers"
import type { Configuration } from "@eventbus/config"
import { Fleet, type FleetView } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Clusters from "./clusters.ts"
import * as ConfigurationFile from "./configurationFile.ts"
import { type Failed, toFailed } from "./dlt/operator.ts"
import { type CommandFailed, refuse } from "./failures.ts"
import { atProcess } from "./runningProcess.ts"
import type * as Target from "./target.ts"

/** A command to all processes. */
export interface Command {
  readonly reason: string
  readonly tier?: number
  /** Epoch milliseconds. */
  readonly until?: number
}

/** The clusters of a command, or the process that it asks. */
type Source = Pick<Target.Source, "profile" | "cluster" | "url">

/** The fleet at this moment. `file`: the configuration; undefined with `--url`. */
export const view = (source: Source, file: string | undefined): Effect.Effect<FleetAnswers.View, CommandFailed> =>
  Option.match(source.url, {
    onNone: () => onCluster(source, file, (fleet) => Effect.map(fleet.view, AnswersOf.fleetViewOf)),
    onSome: (url) => atProcess(url, ({ client, asked }) => asked(client.bindings.fleet()))
  })

/** Commands all processes about the binding. */
export const command = (
  source: Source,
  { file, binding: name }: Target.Target,
  verb: FleetView.Verb,
  request: Command
): Effect.Effect<FleetAnswers.Commanded, CommandFailed> =>
  Option.match(source.url, {
    onNone: () =>
      onCluster(source, file, (fleet, { bindings }) =>
        Effect.flatMap(ConfigurationFile.bindingNamed(bindings, name), (binding) =>
          AnswersOf.commandFleet(fleet, verb, binding, { ...request, by: operator() })
        )
      ),
    onSome: (url) =>
      atProcess(url, ({ client: { bindings }, asked }) =>
        asked(bindings[verb]({ params: { name }, query: {}, payload: { scope: "fleet", ...request } })).pipe(
          Effect.flatMap((answer) =>
            "verb" in answer
              ? Effect.succeed(answer)
              : Effect.die(new Error("The process has answered for itself alone"))
          )
        )
      )
  })

const onCluster = Effect.fnUntraced(function* <A>(
  { profile, cluster }: Source,
  file = "",
  use: (fleet: Fleet.Fleet["Service"], configuration: Configuration.Configuration) => Effect.Effect<A, Failed>
) {
  const configuration = yield* ConfigurationFile.readValid({ file, profile })
  if (configuration.fleet === undefined)
    return yield* refuse(`${file} has no eventbus.fleet, so the processes that run it belong to no fleet`)
  const fleet = Layer.provide(Fleet.layer(configuration.fleet), yield* Clusters.layer(configuration, cluster))
  return yield* Effect.flatMap(Fleet.Fleet, (service) => use(service, configuration)).pipe(
    Effect.provide(fleet),
    Effect.mapError(toFailed),
    Effect.provideService(References.LogToStderr, true)
  )
})

/** The one who commands straight on the cluster, for those who ask who it was. */
const operator = (): string => `${userInfo().username}@${hostname()}`
