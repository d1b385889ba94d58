/**
 * The effect of a transform on the first letters of a plan or of a rehearsal: the flag, the question, and the lines for a terminal.
 */
import type * as DeadLetterAnswers from "@eventbus/admin/DeadLetterAnswers"
import { DeadLetterSelection, LogFormat } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { type CommandFailed, refuseUsage } from "../failures.ts"
import { indent } from "../text.ts"
import type { Operator } from "./operator.ts"

const most = 20

export const flag = Flag.Int("diff").pipe(
  Flag.withMetavar("letters"),
  Flag.withDescription("In so many letters, 0 to 20, what the transform changes is shown line by line. Default: 3"),
  Flag.withDefault(3)
)

export const check = (given: number): Effect.Effect<void, CommandFailed> =>
  given >= 0 && given <= most
    ? Effect.void
    : refuseUsage(`--diff is ${given}; allowed is a whole number from 0 to ${most}`)

type Transformed = DeadLetterAnswers.Transformed

/** None without a transform. The plan is made, and the letters are rehearsed: where the difference cannot be shown, standard error says why. */
export const first = (
  operator: Operator,
  positions: ReadonlyArray<string>,
  transform: string | undefined,
  count: number
): Effect.Effect<ReadonlyArray<Transformed>> => {
  const chosen = positions.slice(0, count).flatMap((position) => DeadLetterSelection.parsePosition(position) ?? [])
  if (transform === undefined || chosen.length === 0) return Effect.succeed([])
  return Effect.catch(operator.transformed(chosen, transform), ({ message }) =>
    Effect.as(Console.error(LogFormat.oneLine(`what '${transform}' changes cannot be shown: ${message}`)), [])
  )
}

/** With what is known of the letters, where something is. */
export const withTransformed = <A extends object>(answer: A, transformed: ReadonlyArray<Transformed>): A =>
  transformed.length === 0 ? answer : { ...answer, transformed }

export const linesOf = (transformed: ReadonlyArray<Transformed>): ReadonlyArray<string> =>
  transformed.flatMap(letterLines)

const letterLines = (found: Transformed): ReadonlyArray<string> => {
  const { position, transform, outcome, reason = `${transform} leaves it as it is`, changed, difference } = found
  if (outcome === "stays") return [LogFormat.oneLine(`${position} stays: ${reason}`)]
  const what = changed.length === 0 ? "nothing" : changed.join(", ")
  const unreadable = found.decodable === false ? "; today's serde cannot read the copy" : ""
  const hidden = difference === undefined ? "; the lines need the permission view-payload" : ""
  return [
    LogFormat.oneLine(`${position}: ${transform} changes ${what}${unreadable}${hidden}`),
    ...(difference?.mask === "failed" ? [indent(1, "hidden: the mask of the program failed")] : []),
    ...partOf("key", difference?.key),
    ...partOf("value", difference?.value),
    ...partOf("headers", difference?.headers)
  ]
}

const partOf = (name: string, lines: ReadonlyArray<DeadLetterAnswers.DiffLine> = []): ReadonlyArray<string> =>
  lines.length === 0
    ? []
    : [indent(1, name), ...lines.map(({ sign, text }) => indent(2, LogFormat.oneLine(`${sign} ${text}`)))]
