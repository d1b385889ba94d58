/**
 * The flags that say which dead letters a command is about.
 */
import { Settings } from "@eventbus/config"
import { DeadLetterSelection } from "@eventbus/core"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type CommandFailed, refuseUsage } from "../failures.ts"
import * as Flags from "../flags.ts"
import { group } from "./deadLetters.ts"

const many = { least: 0, most: 1_000 }

const time = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("time"),
    Flag.withDescription(`${description}: ISO-8601 with Z or an offset, or epoch milliseconds`),
    Flag.optional
  )

const positions = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("partition@offset"),
    Flag.withDescription(`${description}; may be repeated`),
    Flag.between(many.least, many.most)
  )

export const flags = {
  group: Flag.between(group, many.least, many.most),
  from: time("from", "Dead-lettered at this time or later"),
  to: time("to", "Dead-lettered before this time"),
  key: Flag.String("key").pipe(
    Flag.withAlias("k"),
    Flag.withDescription("With this key, as UTF-8 text; may be repeated"),
    Flag.between(many.least, many.most)
  ),
  at: positions("at", "At this position of the dead letter topic"),
  all: Flag.Boolean("all").pipe(Flag.withDescription("Every dead letter"), Flag.withDefault(false)),
  except: positions("except", "Not at this position")
}

/** The values of the flags. */
export interface Chosen {
  readonly group: ReadonlyArray<string>
  readonly from: Option.Option<string>
  readonly to: Option.Option<string>
  readonly key: ReadonlyArray<string>
  readonly at: ReadonlyArray<string>
  readonly all: boolean
  readonly except: ReadonlyArray<string>
}

const flagOf: Readonly<Record<string, string>> = {
  fingerprints: "--group",
  toMillis: "--to",
  all: "--all",
  keys: "--key",
  records: "--at",
  except: "--except"
}

/** The selection, or what is wrong with a flag. */
export const read = Effect.fnUntraced(function* (chosen: Chosen) {
  const { group, key, all } = chosen
  const from = yield* timeOf("from", chosen.from)
  const to = yield* timeOf("to", chosen.to)
  const records = yield* Effect.forEach(chosen.at, (text) => Flags.positionOf("--at", text))
  const except = yield* Effect.forEach(chosen.except, (text) => Flags.positionOf("--except", text))
  const selection: DeadLetterSelection.DeadLetterSelection = {
    ...(group.length === 0 ? {} : { fingerprints: group }),
    ...(from === undefined ? {} : { fromMillis: from }),
    ...(to === undefined ? {} : { toMillis: to }),
    ...(key.length === 0 ? {} : { keys: key }),
    ...(records.length === 0 ? {} : { records }),
    ...(all ? { all } : {}),
    ...(except.length === 0 ? {} : { except })
  }
  const [issue] = DeadLetterSelection.issues(selection)
  if (issue === undefined) return selection
  const [, name = ""] = /^selection\.(\w+)/.exec(issue.path) ?? []
  return yield* refuseUsage(
    name === ""
      ? "name the dead letters by --group, --from, --to, --key, --at or --all"
      : `${flagOf[name] ?? name} is ${issue.given}; allowed is ${issue.expected}`
  )
})

const timeOf = (name: string, text: Option.Option<string>): Effect.Effect<number | undefined, CommandFailed> => {
  if (Option.isNone(text)) return Effect.succeed(undefined)
  const millis = Settings.parseTime(text.value)
  return Number.isNaN(millis)
    ? refuseUsage(`--${name} is "${text.value}"; allowed is ISO-8601 with Z or an offset, or epoch milliseconds`)
    : Effect.succeed(millis)
}
