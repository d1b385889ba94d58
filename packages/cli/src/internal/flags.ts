/**
 * Arguments and flags that several commands share, and how commands read those that may be absent.
 */
import { Choices, DeadLetterSelection } from "@eventbus/core"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type CommandFailed, refuseUsage } from "./failures.ts"

export const file = Argument.String("file").pipe(
  Argument.withDescription("The configuration: YAML, or JSON when its name ends with .json")
)

export const profile = Flag.String("profile").pipe(
  Flag.withAlias("p"),
  Flag.withMetavar("name"),
  Flag.withDescription("Lays file-NAME.yaml over the file; may be repeated. Default: $EVENTBUS_PROFILE"),
  Flag.between(0, 16)
)

export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Prints one JSON value instead of text"),
  Flag.withDefault(false)
)

/** How to reach the clusters, instead of what the file says. */
export const cluster = {
  brokers: Flag.String("brokers").pipe(
    Flag.withAlias("b"),
    Flag.withMetavar("host:port,..."),
    Flag.withDescription("The brokers of cluster `default`, instead of those in the file"),
    Flag.optional
  ),
  transport: Flag.Literals("transport", Choices.transport).pipe(
    Flag.withDescription("The connections to all clusters, instead of those that the file names. Default: kafkajs"),
    Flag.optional
  )
}

/** Their values. */
export interface Cluster {
  readonly brokers: Option.Option<string>
  readonly transport: Option.Option<(typeof Choices.transport)[number]>
}

/** The cursor of a page. */
export const before = Flag.String("before").pipe(
  Flag.withMetavar("cursor"),
  Flag.withDescription("The page that follows, as the page before names it"),
  Flag.optional
)

/** The length of a page. `things`: of which there are so many. */
export const limit = (things: string) =>
  Flag.Int("limit").pipe(
    Flag.withAlias("n"),
    Flag.withDescription(`Most ${things} of the page, 1 to 500`),
    Flag.withDefault(50)
  )

/** The pace of work that begins with a canary. It stops itself when too many of its `things` fail, in the words of `fail`. */
export const pace = (work: string, things: string, fail: string) => ({
  rate: Flag.Int("rate").pipe(Flag.withDescription(`Most ${things} a second. Default: 50`), Flag.optional),
  canary: Flag.Int("canary").pipe(
    Flag.withDescription(`So many ${things} come first, and the others wait for their fate. Default: 20`),
    Flag.optional
  ),
  canaryWait: Flag.String("canary-wait").pipe(
    Flag.withMetavar("duration"),
    Flag.withDescription("The longest wait for the fate of the canary, such as 15s. Default: 60 seconds"),
    Flag.optional
  ),
  stopAbove: Flag.Finite("stop-above").pipe(
    Flag.withMetavar("percent"),
    Flag.withDescription(`The ${work} stops itself when more of its ${things} ${fail}. Default: 5`),
    Flag.optional
  )
})

/** An object with the value under its name; empty without a value. */
export const given = <K extends string, A>(name: K, value: Option.Option<A>): { readonly [N in K]?: A } =>
  Option.match(value, {
    onNone: () => ({}),
    onSome: (some) => ({ [name]: some }) as { readonly [N in K]: A }
  })

/** The position that a text names. `where`: the flag or the argument that has the text. */
export const positionOf = (where: string, text: string): Effect.Effect<DeadLetterSelection.Position, CommandFailed> => {
  const position = DeadLetterSelection.parsePosition(text)
  return position === undefined
    ? refuseUsage(`${where} is "${text}"; allowed is partition@offset, such as 3@17`)
    : Effect.succeed(position)
}
