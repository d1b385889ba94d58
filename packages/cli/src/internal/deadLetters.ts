/**
 * The parts that the commands on dead letters share: the binding of the file, its cluster, and their arguments.
 */
import { Configuration } from "@eventbus/config"
import {
  Binding,
  type Broker,
  type BrokerError,
  type EventBusError,
  type Rehearsal,
  type Replay,
  type ReplayPlan,
  type ReplayRun
} from "@eventbus/core"
import { Console, Effect, Option, References } from "effect"
import { Argument, Flag } from "effect/cli"
import * as Clusters from "./clusters.ts"
import * as ConfigurationFile from "./configurationFile.ts"
import { CommandFailed, exitCodes, refuse, refuseUsage } from "./failures.ts"
import * as Flags from "./flags.ts"
import * as HandlersModule from "./handlersModule.ts"

/** The arguments that all of them take. */
export const shared = {
  file: Flags.file,
  binding: Argument.String("binding").pipe(Argument.withDescription("The binding whose dead letters are meant")),
  profile: Flags.profile,
  brokers: Flags.brokers,
  json: Flags.json
}

/** The module with the handlers, for the commands that read records as the program does. */
export const handlers = HandlersModule.flag.pipe(
  Flag.withDescription("The module with the handlers, whose serdes read keys and values. Default: they are bytes"),
  Flag.optional
)

/** Groups of dead letters, by fingerprint. */
export const group = Flag.String("group").pipe(
  Flag.withAlias("g"),
  Flag.withMetavar("fingerprint"),
  Flag.withDescription("Of this group, as 'dlt groups' names it")
)

/** Functions of the user may print: the result of a command alone goes to standard output. */
export const aside = Effect.fnUntraced(function* <A, E, R>(run: Effect.Effect<A, E, R>) {
  const console = yield* Console.Console
  const toStderr = { ...console, log: console.error, info: console.error, debug: console.error }
  return yield* Effect.provideService(run, Console.Console, toStderr)
})

/** The file, the binding, and how they are read. */
export interface Source {
  readonly file: string
  readonly binding: string
  readonly profile: ReadonlyArray<string>
  readonly brokers: Option.Option<string>
  readonly handlers?: Option.Option<string>
}

/** The failures of the commands on dead letters. */
type Failure =
  | BrokerError.BrokerError
  | EventBusError.UnknownCluster
  | Replay.InvalidArgument
  | Rehearsal.DryRunLayerFailed
  | Replay.UnknownTier
  | Replay.ReplayError
  | ReplayPlan.PlanRefused
  | ReplayRun.UnknownRun
  | ReplayRun.RunOver

/** Runs something with the dead letters of the binding. */
export const withLetters = <A>(
  source: Source,
  use: (letters: Replay.DeadLetters) => Effect.Effect<A, Failure | CommandFailed>
) => withBinding(source, (binding) => Effect.flatMap(Binding.deadLetters(binding), use))

/** Runs something with the plans and runs of the binding. */
export const withRuns = <A>(source: Source, use: (runs: ReplayRun.Runs) => Effect.Effect<A, Failure | CommandFailed>) =>
  withBinding(source, (binding) => Effect.flatMap(Binding.runs(binding), use))

const withBinding = Effect.fnUntraced(function* <A>(
  source: Source,
  use: (binding: Binding.Binding<never>) => Effect.Effect<A, Failure | CommandFailed, Broker.Broker>
) {
  const { file, profile, brokers, binding: name } = source
  const application = yield* Option.match(source.handlers ?? Option.none(), {
    onNone: () => Effect.succeed(undefined),
    onSome: HandlersModule.load
  })
  const given = application === undefined ? {} : { handlers: application.handlers }
  const configuration = yield* ConfigurationFile.readValid({ file, profile, ...given })
  const bindings =
    application === undefined
      ? Configuration.withoutHandlers(configuration)
      : yield* Effect.mapError(Configuration.bindings(configuration, application.handlers), toFailed)
  const binding = bindings.find((each) => each.name === name)
  if (binding === undefined) {
    return yield* refuse(`no binding '${name}'; the file has ${bindings.map((each) => each.name).join(", ")}`)
  }
  return yield* use(binding).pipe(
    Effect.mapError((error) => (error instanceof CommandFailed ? error : toFailed(error))),
    Effect.provideService(References.LogToStderr, true),
    Effect.provide(yield* Clusters.layer(configuration, brokers))
  )
})

const toFailed = (error: Failure | EventBusError.ConfigurationValidation): CommandFailed => {
  const { _tag, message } = error
  const code = wrongUsage.has(_tag) ? exitCodes.usage : noes.has(_tag) ? exitCodes.refused : exitCodes.unavailable
  return new CommandFailed({ message, code })
}

type Tag = Failure["_tag"] | EventBusError.ConfigurationValidation["_tag"]

const wrongUsage: ReadonlySet<Tag> = new Set<Tag>(["InvalidArgument", "UnknownTier"])

/** The cluster has answered, and the answer is no. */
const noes: ReadonlySet<Tag> = new Set<Tag>([
  ...(["DryRunLayerFailed", "ConfigurationValidation", "ReplayRunning", "ReplayTakenOver"] as const),
  ...(["UnknownPlan", "PlanExpired", "PlanApplied", "PlanStale", "UnknownRun", "RunOver"] as const)
])

/** The states of a flag, with commas. */
export const statesOf = <State extends string>(
  text: Option.Option<string>,
  known: ReadonlyArray<State>
): Effect.Effect<ReadonlyArray<State> | undefined, CommandFailed> => {
  if (Option.isNone(text)) return Effect.succeed(undefined)
  const parts = text.value.split(",")
  const isKnown = (part: string): part is State => known.some((state) => state === part)
  return parts.every(isKnown)
    ? Effect.succeed(parts)
    : refuseUsage(`--state is "${text.value}"; allowed is one or more of ${known.join(", ")}, with commas`)
}
