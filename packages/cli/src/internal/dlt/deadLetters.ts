/**
 * The parts that the commands on dead letters share: the binding, straight on its cluster or in a running process, and their flags.
 */
import { Configuration } from "@eventbus/config"
import { Audit, Binding, type Replay } from "@eventbus/core"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Audited from "../audited.ts"
import * as Clusters from "../clusters.ts"
import * as ConfigurationFile from "../configurationFile.ts"
import { type CommandFailed, refuseUsage } from "../failures.ts"
import * as Flags from "../flags.ts"
import * as HandlersModule from "../handlersModule.ts"
import { atProcess } from "../runningProcess.ts"
import type * as Target from "../target.ts"
import * as AuditedOperator from "./auditedOperator.ts"
import * as DirectOperator from "./directOperator.ts"
import { type Failed, type Operator, toFailed } from "./operator.ts"
import * as RemoteOperator from "./remoteOperator.ts"

/** The module with the handlers, for the commands that read records as the program does. */
export const handlers = HandlersModule.flag.pipe(
  Flag.withDescription("The module with the handlers, whose serdes read keys and values. Default: they are bytes"),
  Flag.optional
)

/** One of the topics of a binding that reads several. */
export const topic = Flag.String("topic").pipe(
  Flag.withMetavar("name"),
  Flag.withDescription("Of a binding of several topics: the dead letters of this one. Default: lists show all of them"),
  Flag.optional
)

/** Groups of dead letters, by fingerprint. */
export const group = Flag.String("group").pipe(
  Flag.withAlias("g"),
  Flag.withMetavar("fingerprint"),
  Flag.withDescription("Of this group, as 'dlt groups' names it")
)

/** A function of the user that repairs letters. */
export const transform = Flag.String("transform").pipe(
  Flag.withMetavar("name"),
  Flag.withDescription("A function of the binding, in --handlers, that repairs the letters"),
  Flag.optional
)

/** A transform is a function, and no file names one. The process behind `--url` has its code. */
export const needHandlers = (
  name: string | undefined,
  { handlers = Option.none(), url }: Target.Source
): Effect.Effect<void, CommandFailed> =>
  name === undefined || Option.isSome(handlers) || Option.isSome(url)
    ? Effect.void
    : refuseUsage(
        `transform '${name}' is a function in the code of the binding: --handlers MODULE names the module that has it`
      )

/** Runs something with the operations on the dead letters of the binding. */
export const withOperator = <A>(
  source: Target.Source,
  target: Target.Target,
  use: (operator: Operator) => Effect.Effect<A, Failed>
) =>
  Option.match(source.url, {
    onNone: () => onCluster(source, target, use),
    onSome: (url) =>
      atProcess(url, (asking) =>
        use(RemoteOperator.make(asking, target.binding, Option.getOrUndefined(source.topic ?? Option.none())))
      )
  })

const onCluster = Effect.fnUntraced(function* <A>(
  { profile, cluster, handlers = Option.none(), topic = Option.none() }: Target.Source,
  { file = "", binding: name }: Target.Target,
  use: (operator: Operator) => Effect.Effect<A, Failed>
) {
  const application = yield* Effect.transposeOption(Option.map(handlers, HandlersModule.load))
  const loaded = Option.map(application, ({ handlers }) => handlers)
  const configuration = yield* ConfigurationFile.readValid({ file, profile, ...Flags.given("handlers", loaded) })
  const bindings = yield* Option.match(loaded, {
    onNone: () => Effect.succeed(Configuration.withoutHandlers(configuration)),
    onSome: (handlers) => Effect.mapError(Configuration.bindings(configuration, handlers), toFailed)
  })
  const binding = yield* ConfigurationFile.bindingNamed(bindings, name)
  return yield* Effect.gen(function* () {
    const letters = yield* ofTopic(Binding.deadLetters(binding), topic)
    const operator = DirectOperator.make(letters, yield* ofTopic(Binding.runs(binding), topic))
    const key = `${configuration.bindings.find((each) => each.name === name)?.cluster ?? "default"}:${name}`
    return yield* use(
      AuditedOperator.make(operator, yield* Audited.make, { binding: key, ...Flags.given("topic", topic) })
    )
  }).pipe(
    Effect.provide(configuration.audit === undefined ? Layer.empty : Audit.layer(configuration.audit)),
    Effect.mapError(toFailed),
    Effect.provideService(References.LogToStderr, true),
    Effect.provide(yield* Clusters.layer(configuration, cluster))
  )
})

/** The commands on one topic, or on all where none is named. */
const ofTopic = <A extends { readonly ofTopic: (topic: string) => Effect.Effect<A, Replay.InvalidArgument> }, E, R>(
  all: Effect.Effect<A, E, R>,
  topic: Option.Option<string>
): Effect.Effect<A, E | Replay.InvalidArgument, R> =>
  Option.match(topic, { onNone: () => all, onSome: (name) => Effect.flatMap(all, (each) => each.ofTopic(name)) })

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
