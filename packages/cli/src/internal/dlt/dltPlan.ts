/**
 * `eventbus dlt plan`, and the commands that make a plan and apply it at once: `run`, `discard` and `restore`.
 */
import { Settings } from "@eventbus/config"
import { ReplayPlan } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { refuse, refuseUsage } from "../failures.ts"
import * as Flags from "../flags.ts"
import * as Target from "../target.ts"
import { jsonText } from "../text.ts"
import { handlers, needHandlers, topic, transform, withOperator } from "./deadLetters.ts"
import { ended, worked } from "./dltApply.ts"
import { checkReason, reason } from "./dltRuns.ts"
import * as Selection from "./dltSelection.ts"
import { planText } from "./runText.ts"
import * as TransformedText from "./transformedText.ts"

const always = {
  ...Selection.flags,
  reason,
  by: Flag.String("by").pipe(
    Flag.withMetavar("name"),
    Flag.withDescription(
      "Who asks, for the record. Default: the name of this host; with --url, that of the credential"
    ),
    Flag.optional
  )
}

const ofCopies = {
  tier: Flag.Int("tier").pipe(Flag.withDescription("The retry tier, from 1, of --action toTier"), Flag.optional),
  transform,
  ...Flags.pace("run", "copies", "come back"),
  ignoreMaxReplays: Flag.Boolean("ignore-max-replays").pipe(
    Flag.withDescription("Also takes letters that were replayed too often"),
    Flag.withDefault(false)
  )
}

const all = { ...Target.shared(), topic, handlers, ...always, ...ofCopies }

const actions = ["replay", "toTier", "discard", "restore"] as const

interface Always extends Selection.Chosen {
  readonly reason: string
  readonly by: Option.Option<string>
}

interface OfCopies {
  readonly tier: Option.Option<number>
  readonly transform: Option.Option<string>
  readonly rate: Option.Option<number>
  readonly canary: Option.Option<number>
  readonly canaryWait: Option.Option<string>
  readonly stopAbove: Option.Option<number>
  readonly ignoreMaxReplays: boolean
}

type Given = Always & Partial<OfCopies> & Target.Source & { readonly json: boolean }

const flagOf: Readonly<Record<string, string>> = {
  canaryWait: "canary-wait",
  stopAbove: "stop-above",
  ignoreMaxReplays: "ignore-max-replays"
}

/** The request, or the first thing that no plan takes, before the cluster is asked. */
const requestOf = Effect.fnUntraced(function* (action: ReplayPlan.PlanRequest["action"], given: Given) {
  yield* checkReason(given.reason)
  const select = yield* Selection.read(given)
  const { by, tier, transform, rate, canary, stopAbove, ignoreMaxReplays } = given
  const canaryWait = Option.map(given.canaryWait ?? Option.none(), durationOf)
  if (Option.isSome(given.url) && Option.isSome(by)) {
    return yield* refuseUsage("--by has no meaning beside --url: the credential says who asks")
  }
  const optional = Object.entries({ by, tier, transform, rate, canary, canaryWait, stopAbove }).flatMap(
    ([name, value]) => (value !== undefined && Option.isSome<string | number>(value) ? [[name, value.value]] : [])
  )
  const request = {
    ...{ action, select, reason: given.reason, ...Object.fromEntries(optional) },
    ...(ignoreMaxReplays === true ? { ignoreMaxReplays } : {})
  }
  const [issue] = ReplayPlan.issues(request)
  if (issue === undefined) {
    yield* needHandlers(Option.getOrUndefined(transform ?? Option.none()), given)
    return request as ReplayPlan.PlanRequest
  }
  const { path, found, allowed } = issue
  return yield* refuseUsage(`--${flagOf[path] ?? path} is ${found}; allowed is ${allowed}`)
})

/** The milliseconds of a duration. Any other text stays as it is, and is refused by name. */
const durationOf = (text: string): string | number => {
  const millis = Settings.parseDuration(text)
  return Number.isNaN(millis) ? text : millis
}

/** Makes a plan, tells it on standard error, and applies it when it has letters. */
const planned = Effect.fnUntraced(function* (action: ReplayPlan.PlanRequest["action"], given: Given) {
  const target = yield* Target.read(given, [])
  const request = yield* requestOf(action, given)
  const receipt = yield* withOperator(given, target, (operator) =>
    Effect.gen(function* () {
      const plan = yield* operator.plan(request)
      yield* Console.error(planText(plan))
      return plan.count === 0 ? yield* refuse("") : yield* worked(operator, "apply", plan.id, target.said)
    })
  )
  yield* ended(receipt, target.said, given.json)
})

export const plan = Command.make(
  "plan",
  {
    ...all,
    diff: TransformedText.flag,
    action: Flag.Literals("action", actions).pipe(Flag.withDescription("What for"), Flag.withDefault("replay"))
  },
  Effect.fnUntraced(function* ({ action, diff, ...given }) {
    const target = yield* Target.read(given, [])
    yield* TransformedText.check(diff)
    const request = yield* requestOf(action, given)
    const [made, transformed] = yield* withOperator(given, target, (operator) =>
      Effect.gen(function* () {
        const made = yield* operator.plan(request)
        return [made, yield* TransformedText.first(operator, made.sample, request.transform, diff)] as const
      })
    )
    yield* Console.log(
      given.json
        ? jsonText(TransformedText.withTransformed(made, transformed))
        : [planText(made), ...TransformedText.linesOf(transformed)].join("\n")
    )
    if (made.count === 0) return yield* refuse("")
  })
).pipe(
  Command.withShortDescription("Says what a run would do with dead letters"),
  Command.withDescription(
    "Makes a plan over the dead letters that meet all flags, and says how many there are, where they would go and which would stay. 'dlt apply' applies it, within 15 minutes. Exit code 1 when the plan has no letters."
  ),
  Command.withExamples([
    {
      command: 'eventbus dlt plan app.yaml orders --group v1-9f86d081884c7d65 --reason "INC-1204"',
      description: "To where they came from"
    },
    {
      command: 'eventbus dlt plan app.yaml orders --all --action toTier --tier 1 --reason "INC-1204" --json',
      description: "To a retry tier, for a program"
    }
  ])
)

export const run = Command.make("run", all, (given) =>
  planned(Option.isSome(given.tier) ? "toTier" : "replay", given)
).pipe(
  Command.withShortDescription("Plans and replays dead letters at once"),
  Command.withDescription(
    "Makes a plan as 'dlt plan' does, and applies it as 'dlt apply' does. With --tier, letters go to that retry tier."
  ),
  Command.withExamples([
    {
      command: 'eventbus dlt run app.yaml orders --group v1-9f86d081884c7d65 --reason "INC-1204"',
      description: "20 first, then 50 a second"
    }
  ])
)

export const discard = Command.make("discard", { ...Target.shared(), topic, ...always }, (given) =>
  planned("discard", given)
).pipe(
  Command.withShortDescription("Gives dead letters up"),
  Command.withDescription(
    "Gives dead letters up: they stay in the topic, and no replay takes them any more until 'dlt restore' brings them back."
  ),
  Command.withExamples([
    { command: 'eventbus dlt discard app.yaml orders --at 3@17 --reason "a test order"', description: "One" }
  ])
)

export const restore = Command.make("restore", { ...Target.shared(), topic, ...always }, (given) =>
  planned("restore", given)
).pipe(
  Command.withShortDescription("Brings dead letters back that were given up"),
  Command.withDescription("Letters that were given up wait again, and every replay by command takes them."),
  Command.withExamples([
    { command: 'eventbus dlt restore app.yaml orders --at 3@17 --reason "no test at all"', description: "One" }
  ])
)
