/**
 * The binding that a command is about: one of a file, on the file's cluster, or one of a running process that `--url` names.
 */

import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type CommandFailed, refuseUsage } from "./failures.ts"
import * as Flags from "./flags.ts"

/** The admin API of a running process. */
export const requiredUrl = Flag.String("url").pipe(
  Flag.withAlias("u"),
  Flag.withMetavar("http://host:port"),
  Flag.withDescription("The admin API of a running process; $EVENTBUS_TOKEN is the credential")
)

export const url = Flag.optional(requiredUrl)

/** The arguments and flags. Without `--url` the first argument is the file. `further` names the arguments behind the binding. */
export const shared = (...further: ReadonlyArray<string>) => ({
  words: Argument.String(["[file]", "binding", ...further].join(" ")).pipe(
    Argument.withDescription(
      ["The configuration, but not with --url; the binding", ...further.map((name) => `the ${name}`)].join("; ")
    ),
    Argument.variadic({ min: 1 })
  ),
  profile: Flags.profile,
  cluster: Flags.cluster,
  url,
  json: Flags.json
})

/** Their values. */
export interface Source {
  readonly words: ReadonlyArray<string>
  readonly profile: ReadonlyArray<string>
  readonly cluster: Flags.Cluster
  readonly url: Option.Option<string>
  readonly handlers?: Option.Option<string>
  readonly topic?: Option.Option<string>
}

export interface Target {
  /** Undefined with `--url`. */
  readonly file: string | undefined
  readonly binding: string
  /** The arguments behind the binding. */
  readonly further: ReadonlyArray<string>
  /** The words that lead another command to the same binding, such as `app.yaml orders`. */
  readonly said: string
}

/** Reads the arguments, or says which ones there should be. */
export const read = (
  { words, url, cluster, handlers = Option.none() }: Source,
  further: ReadonlyArray<string>
): Effect.Effect<Target, CommandFailed> => {
  const names = [...(Option.isNone(url) ? ["file"] : []), "binding", ...further]
  if (words.length !== names.length) {
    const why = Option.isNone(url) ? "" : ", since --url names the process"
    return refuseUsage(`found ${words.length} arguments; allowed is ${names.join(", ")}${why}`)
  }
  if (Option.isSome(url)) {
    for (const name of ["brokers", "transport"] as const) {
      if (Option.isSome<unknown>(cluster[name]))
        return refuseUsage(`--${name} has no meaning beside --url: the process has its clusters`)
    }
    if (Option.isSome(handlers)) return refuseUsage("--handlers has no meaning beside --url: the process has its code")
    const [binding = "", ...rest] = words
    return Effect.succeed({ file: undefined, binding, further: rest, said: `${binding} --url ${url.value}` })
  }
  const [file = "", binding = "", ...rest] = words
  return Effect.succeed({ file, binding, further: rest, said: `${file} ${binding}` })
}
