/**
 * `eventbus dlt rehearse`: what today's code would do with dead letters. The answer is no when one of them would not pass.
 */
import { Settings } from "@eventbus/config"
import { DeadLetterSelection, LogFormat, type Rehearsal, Route } from "@eventbus/core"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { group, handlers, shared, withLetters } from "./deadLetters.ts"
import { type CommandFailed, refuse, refuseUsage } from "./failures.ts"
import { columns, counted, indent, jsonText } from "./text.ts"

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

export const rehearse = Command.make(
  "rehearse",
  {
    ...shared,
    handlers,
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
  },
  Effect.fnUntraced(function* ({ group, from, to, key, at, all, except, json, ...source }) {
    const selection = yield* selectionOf({ group, from, to, key, at, all, except })
    const console = yield* Console.Console
    // Handlers may print: the result alone goes to standard output.
    const aside = { ...console, log: console.error, info: console.error, debug: console.error }
    const report = yield* withLetters(source, (letters) =>
      Effect.provideService(letters.rehearse(selection), Console.Console, aside)
    )
    yield* Console.log(json ? jsonText(report) : textOf(report))
    const { selected, passes, decodes, skipped, complete } = report
    if (passes + decodes + skipped < selected || !complete) return yield* refuse("")
  })
).pipe(
  Command.withShortDescription("Says what today's code would do with dead letters"),
  Command.withDescription(
    "Decodes the selected dead letters with the serdes of --handlers, and calls their handlers within the layer `dryRun` of the module. Nothing is published, committed or remembered. Exit code 1 when one of them would not pass."
  ),
  Command.withExamples([
    {
      command: "eventbus dlt rehearse app.yaml orders --handlers ./handlers.ts --group v1-9f86d081884c7d65",
      description: "One group"
    },
    { command: "eventbus dlt rehearse app.yaml orders --handlers ./handlers.ts --all", description: "Everything" }
  ])
)

interface Chosen {
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

const selectionOf = Effect.fnUntraced(function* (chosen: Chosen) {
  const { group, key, all } = chosen
  const from = yield* timeOf("from", chosen.from)
  const to = yield* timeOf("to", chosen.to)
  const records = yield* Effect.forEach(chosen.at, (text) => positionOf("at", text))
  const except = yield* Effect.forEach(chosen.except, (text) => positionOf("except", text))
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

const positionOf = (name: string, text: string): Effect.Effect<DeadLetterSelection.Position, CommandFailed> => {
  const position = DeadLetterSelection.parsePosition(text)
  return position === undefined
    ? refuseUsage(`--${name} is "${text}"; allowed is partition@offset, such as 3@17`)
    : Effect.succeed(position)
}

const textOf = (report: Rehearsal.Report): string => {
  const { mode, complete, groups, published } = report
  return [
    `${counted(report.selected, "dead letter")}: ${countsText(report)}`,
    ...(mode === "decode"
      ? ["no handler was called: the module has no layer `dryRun`, or there is no --handlers"]
      : []),
    ...(published === 0 ? [] : [`${counted(published, "record")} would be published`]),
    ...(complete ? [] : ["not all of them were rehearsed: a bound was reached"]),
    ...columns(groups.map((group) => [group.fingerprint, LogFormat.oneLine(group.exceptionClass), countsText(group)])),
    ...groups.flatMap(({ fingerprint, failures }) =>
      failures.map(({ count, exceptionClass, message, route }) =>
        indent(
          1,
          LogFormat.oneLine(
            `${fingerprint}: ${count} fail as ${exceptionClass} ${message.slice(0, 200)} -> ${Route.describe(route)}`
          )
        )
      )
    )
  ].join("\n")
}

const countsText = (counts: Rehearsal.Counts): string => {
  const parts: ReadonlyArray<readonly [number, string]> = [
    [counts.passes, "would pass"],
    [counts.decodes, "can be decoded"],
    [counts.undecodable, "cannot be decoded"],
    [counts.fails, "would fail"],
    [counts.timedOut, "would not end in time"],
    [counts.skipped, "skipped"],
    [counts.exhausted, "replayed too often for a replay that does not ignore maxReplays"]
  ]
  const found = parts.filter(([count]) => count > 0).map(([count, text]) => `${count} ${text}`)
  return found.length === 0 ? "none" : found.join(", ")
}
