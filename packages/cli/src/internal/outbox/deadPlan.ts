/**
 * `eventbus outbox dead plan`: says what would become of dead events, and writes the plan for `apply` and `receipt`.
 */
import { Settings } from "@eventbus/config"
import { LogFormat } from "@eventbus/core"
import type { DeadEvents } from "@eventbus/outbox"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { checkReason, reason } from "../dlt/dltRuns.ts"
import { refuse } from "../failures.ts"
import * as Flags from "../flags.ts"
import { jsonText } from "../text.ts"
import { shared, withOperator } from "./deadEvents.ts"
import { planText } from "./deadEventText.ts"
import * as Selection from "./eventSelection.ts"
import * as PlanFile from "./planFile.ts"

const flags = {
  ...shared,
  ...Selection.flags,
  action: Flag.Literals("action", ["replay", "discard"]).pipe(
    Flag.withDescription("replay delivers the events again, discard deletes them for good"),
    Flag.withDefault("replay" as const)
  ),
  reason,
  ...Flags.pace("work", "events", "fail again"),
  out: Flag.String("out").pipe(
    Flag.withAlias("o"),
    Flag.withMetavar("file"),
    Flag.withDescription("Writes the plan into this new file, for 'apply' and 'receipt'. Default: nothing is written"),
    Flag.optional
  )
}

export const plan = Command.make(
  "plan",
  flags,
  Effect.fnUntraced(function* ({ outbox, json, action, reason, rate, canary, canaryWait, stopAbove, out, ...chosen }) {
    yield* checkReason(reason)
    const settings = { rate, canary, canaryWait: Option.map(canaryWait, durationOf), stopAbove }
    const given = Object.entries(settings).flatMap(([name, value]) =>
      Option.isSome<string | number>(value) ? [[name, value.value]] : []
    )
    // The operator refuses by name every text that is no duration.
    const request = { action, reason, select: Selection.read(chosen), ...Object.fromEntries(given) }
    const made = yield* withOperator({ outbox }, (operator, { change }) =>
      change(
        { action: "outboxPlan", permissions: [action], reason, target: { plan: action } },
        operator.plan(request as DeadEvents.PlanRequest),
        ({ id }) => id
      )
    )
    const file = made.count === 0 ? undefined : Option.getOrUndefined(out)
    if (file !== undefined) yield* PlanFile.write(file, made)
    const missing = missingOf(made)
    if (missing.length > 0)
      yield* Console.error(LogFormat.oneLine(`no dead event that meets the flags has the id ${missing.join(", ")}`))
    yield* Console.log(json ? jsonText(made) : planText(made, outbox, file))
    if (made.count === 0) return yield* refuse("")
  })
).pipe(
  Command.withShortDescription("Says what would become of dead events"),
  Command.withDescription(
    "Makes a plan over the dead events that meet all flags: how many there are, and which. Changes nothing. 'outbox dead apply' applies the file of --out. Exit code 1 when the plan has no events."
  ),
  Command.withExamples([
    {
      command:
        'eventbus outbox dead plan --outbox ./outbox.ts --group v1-9f86d081884c7d65 --reason "INC-1204" --out plan.json',
      description: "To deliver the events of a group again"
    },
    {
      command: 'eventbus outbox dead plan --outbox ./outbox.ts --id o-17 --action discard --reason "a test" --json',
      description: "To delete one, for a program"
    }
  ])
)

/** The ids that somebody has named, and that no event of the plan has. */
const missingOf = ({ count, select, events }: DeadEvents.Plan): ReadonlyArray<string> => {
  const taken = new Set(events.map(([eventId]) => eventId))
  return count === 0 ? [] : (select.eventIds ?? []).filter((id) => !taken.has(id))
}

/** The milliseconds of a duration. Any other text stays as it is. */
const durationOf = (text: string): string | number => {
  const millis = Settings.parseDuration(text)
  return Number.isNaN(millis) ? text : millis
}
