/**
 * `eventbus dlt rehearse`: what today's code would do with dead letters. The answer is no when one of them would not pass.
 */
import type * as DeadLetterAnswers from "@eventbus/admin/DeadLetterAnswers"
import { LogFormat, type Rehearsal } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { refuse } from "../failures.ts"
import * as Target from "../target.ts"
import { columns, counted, indent, jsonText } from "../text.ts"
import { handlers, needHandlers, topic, transform, withOperator } from "./deadLetters.ts"
import * as Selection from "./dltSelection.ts"
import * as TransformedText from "./transformedText.ts"

export const rehearse = Command.make(
  "rehearse",
  {
    ...Target.shared(),
    topic,
    handlers,
    transform,
    diff: TransformedText.flag,
    ...Selection.flags
  },
  Effect.fnUntraced(function* ({ json, transform, diff, ...source }) {
    const target = yield* Target.read(source, [])
    const selection = yield* Selection.read(source)
    const name = Option.getOrUndefined(transform)
    yield* TransformedText.check(diff)
    yield* needHandlers(name, source)
    const [report, transformed] = yield* withOperator(source, target, (operator) =>
      Effect.gen(function* () {
        const report = yield* operator.rehearse(selection, name === undefined ? {} : { transform: name })
        const taken = report.letters.filter(({ verdict }) => verdict !== "Skipped").map(({ position }) => position)
        return [report, yield* TransformedText.first(operator, taken, name, diff)] as const
      })
    )
    yield* Console.log(
      json
        ? jsonText(TransformedText.withTransformed(report, transformed))
        : [textOf(report), ...TransformedText.linesOf(transformed)].join("\n")
    )
    const { selected, passes, decodes, skipped, complete } = report
    if (passes + decodes + skipped < selected || !complete) return yield* refuse("")
  })
).pipe(
  Command.withShortDescription("Says what today's code would do with dead letters"),
  Command.withDescription(
    "Decodes the selected dead letters with the serdes of --handlers, and calls their handlers within the layer `dryRun` of the module. With --transform, the letters are repaired first. Nothing is published, committed or remembered. Exit code 1 when one of them would not pass."
  ),
  Command.withExamples([
    {
      command: "eventbus dlt rehearse app.yaml orders --handlers ./handlers.ts --group v1-9f86d081884c7d65",
      description: "One group"
    },
    { command: "eventbus dlt rehearse app.yaml orders --handlers ./handlers.ts --all", description: "Everything" }
  ])
)

const textOf = (report: DeadLetterAnswers.RehearsalReport): string => {
  const { mode, complete, groups, letters, published } = report
  return [
    `${counted(report.selected, "dead letter")}: ${countsText(report)}`,
    ...(mode === "decode"
      ? [
          "no handler was called: the binding does not say that a rehearsal may (a module of --handlers: layer `dryRun`; Binding.rehearsable; @eventbus/node: rehearsable: true)"
        ]
      : []),
    ...(published === 0 ? [] : [`${counted(published, "record")} would be published`]),
    ...(complete ? [] : ["not all of them were rehearsed: a bound was reached"]),
    ...columns(groups.map((group) => [group.fingerprint, LogFormat.oneLine(group.exceptionClass), countsText(group)])),
    ...groups.flatMap(({ fingerprint, failures }) =>
      failures.map(({ count, exceptionClass, message = "", route }) =>
        indent(
          1,
          LogFormat.oneLine(`${fingerprint}: ${count} fail as ${exceptionClass} ${message.slice(0, 200)} -> ${route}`)
        )
      )
    ),
    ...letters
      .filter(({ verdict }) => verdict === "Stays")
      .slice(0, mostShown)
      .map(({ position, message = "stays" }) => indent(1, LogFormat.oneLine(`${position}: ${message}`)))
  ].join("\n")
}

/** Letters that would stay, one by one: so many say why. */
const mostShown = 20

const countsText = (counts: Rehearsal.Counts): string => {
  const parts: ReadonlyArray<readonly [number, string]> = [
    [counts.passes, "would pass"],
    [counts.decodes, "can be decoded"],
    [counts.undecodable, "cannot be decoded"],
    [counts.fails, "would fail"],
    [counts.timedOut, "would not end in time"],
    [counts.stays, "would stay as they are"],
    [counts.skipped, "skipped"],
    [counts.exhausted, "replayed too often for a replay that does not ignore maxReplays"]
  ]
  const found = parts.filter(([count]) => count > 0).map(([count, text]) => `${count} ${text}`)
  return found.length === 0 ? "none" : found.join(", ")
}
