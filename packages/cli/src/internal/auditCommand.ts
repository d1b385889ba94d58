/**
 * `eventbus audit`: who did what, why, and with which outcome, straight from the topic of the audit log or by the admin API of a running process.
 */
import type * as AuditAnswers from "@eventbus/admin/AuditAnswers"
import { Settings } from "@eventbus/config"
import { Audit, type AuditView, LogFormat } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Clusters from "./clusters.ts"
import * as ConfigurationFile from "./configurationFile.ts"
import { toFailed } from "./dlt/operator.ts"
import { refuse, refuseUsage } from "./failures.ts"
import * as Flags from "./flags.ts"
import { atProcess } from "./runningProcess.ts"
import * as Target from "./target.ts"
import { columns, jsonText } from "./text.ts"

const flags = {
  file: Argument.String("file").pipe(
    Argument.withDescription("The configuration, whose section eventbus.audit names the topic; but not with --url"),
    Argument.optional
  ),
  url: Flag.optional(Target.requiredUrl),
  after: Flag.String("after").pipe(
    Flag.withMetavar("time"),
    Flag.withDescription(
      "Only what was done since: a time in ISO-8601 or epoch milliseconds, or a duration such as 24h"
    ),
    Flag.optional
  ),
  binding: Flag.String("binding").pipe(Flag.withDescription("Only about this binding"), Flag.optional),
  before: Flags.before,
  limit: Flags.limit("entries"),
  profile: Flags.profile,
  cluster: Flags.cluster,
  json: Flags.json
}

export const audit = Command.make(
  "audit",
  flags,
  Effect.fnUntraced(function* ({ file, url, after, binding, before, limit, json, ...source }) {
    const afterMillis = Option.isNone(after) ? undefined : yield* timeOf(after.value)
    const query: AuditView.AuditQuery = {
      limit,
      ...Flags.given("binding", binding),
      ...Flags.given("before", before),
      ...(afterMillis === undefined ? {} : { afterMillis })
    }
    const page = yield* Option.match(url, {
      onSome: (address) =>
        Option.isSome(file)
          ? refuseUsage("found a file; allowed is none, since --url names the process")
          : ofProcess(address, query),
      onNone: () => ofCluster(file, source, query)
    })
    yield* Console.log(json ? jsonText(page) : textOf(page))
  })
).pipe(
  Command.withShortDescription("Shows who did what, and why"),
  Command.withDescription(
    "Shows the audit log, the newest entry first: who did what, to what, why, and with which outcome. The file needs the section eventbus.audit."
  ),
  Command.withExamples([
    { command: "eventbus audit app.yaml --after 24h", description: "Since yesterday" },
    { command: "eventbus audit --url http://localhost:8080 --binding orders --json", description: "By a process" }
  ])
)

const timeOf = Effect.fnUntraced(function* (text: string) {
  const millis = Settings.parsePast(text, yield* Clock.currentTimeMillis)
  return Number.isNaN(millis)
    ? yield* refuseUsage(
        `--after is "${text}"; allowed is a time in ISO-8601, epoch milliseconds, or a duration such as 24h`
      )
    : millis
})

const ofProcess = (address: string, { afterMillis, ...query }: AuditView.AuditQuery) =>
  atProcess(address, ({ client, asked }) =>
    asked(
      client.audit.audit({ query: { ...query, ...(afterMillis === undefined ? {} : { after: String(afterMillis) }) } })
    )
  )

interface Source {
  readonly profile: ReadonlyArray<string>
  readonly cluster: Flags.Cluster
}

const ofCluster = Effect.fnUntraced(function* (
  file: Option.Option<string>,
  { profile, cluster }: Source,
  query: AuditView.AuditQuery
) {
  if (Option.isNone(file)) return yield* refuseUsage("found no file; allowed is one, or --url")
  const configuration = yield* ConfigurationFile.readValid({ file: file.value, profile })
  if (configuration.audit === undefined) return yield* refuse(`${file.value} has no section eventbus.audit`)
  const { auditPageOf } = yield* Effect.promise(() => import("@eventbus/admin/AnswersOf"))
  return yield* Audit.Audit.pipe(
    Effect.flatMap((log) => log.page(query)),
    Effect.map(auditPageOf),
    Effect.provide(Audit.layer(configuration.audit)),
    Effect.mapError(toFailed),
    Effect.provide(yield* Clusters.layer(configuration, cluster))
  )
})

const targetText = (target: AuditAnswers.AuditEntry["target"] = {}): string =>
  Object.entries(target)
    .map(([name, value]) => `${name}=${typeof value === "object" ? value.join(",") : value}`)
    .join(" ")

const textOf = ({ entries, next }: AuditAnswers.AuditPage): string => {
  const rows = entries.map((entry) => {
    const {
      at,
      by = "unknown",
      action,
      binding = "",
      target,
      run = "",
      outcome,
      error,
      reason = "",
      from,
      repeats
    } = entry
    const ended = [outcome, ...(error === undefined ? [] : [`(${error})`]), ...(repeats === 0 ? [] : [`+${repeats}`])]
    return [at, by, from, action, binding, targetText(target), run, ended.join(" "), reason].map(LogFormat.oneLine)
  })
  const more = next === undefined ? [] : [`more: --before ${next}`]
  return [...(rows.length === 0 ? ["nothing was done"] : columns(rows)), ...more].join("\n")
}
