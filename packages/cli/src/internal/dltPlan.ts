/**
 * `eventbus dlt plan`, and the commands that make a plan and apply it at once: `run`, `discard` and `restore`.
 */
import { ReplayPlan } from "@eventbus/core"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { aside, handlers, type Source, shared, withRuns } from "./deadLetters.ts"
import { ended } from "./dltApply.ts"
import { checkReason, reason } from "./dltRuns.ts"
import * as Selection from "./dltSelection.ts"
import { refuseUsage } from "./failures.ts"
import { planText } from "./runText.ts"
import { jsonText } from "./text.ts"

const always = {
  ...Selection.flags,
  reason,
  by: Flag.String("by").pipe(
    Flag.withMetavar("name"),
    Flag.withDescription("Who asks, for the record. Default: the name of this host"),
    Flag.optional
  )
}

const ofCopies = {
  tier: Flag.Int("tier").pipe(Flag.withDescription("The retry tier, from 1, of --action toTier"), Flag.optional),
  transform: Flag.String("transform").pipe(
    Flag.withMetavar("name"),
    Flag.withDescription("A function of the binding, in --handlers, that repairs the letters"),
    Flag.optional
  ),
  rate: Flag.Int("rate").pipe(Flag.withDescription("Most copies a second. Default: 50"), Flag.optional),
  canary: Flag.Int("canary").pipe(
    Flag.withDescription("So many copies come first, and the others wait for their fate. Default: 20"),
    Flag.optional
  ),
  canaryWait: Flag.String("canary-wait").pipe(
    Flag.withMetavar("duration"),
    Flag.withDescription("The longest wait for the fate of the canary. Default: 60 seconds"),
    Flag.optional
  ),
  stopAbove: Flag.Finite("stop-above").pipe(
    Flag.withMetavar("percent"),
    Flag.withDescription("The run stops itself when more of its copies come back. Default: 5"),
    Flag.optional
  ),
  ignoreMaxReplays: Flag.Boolean("ignore-max-replays").pipe(
    Flag.withDescription("Also takes letters that were replayed too often"),
    Flag.withDefault(false)
  )
}

const all = { ...shared, handlers, ...always, ...ofCopies }

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

type Given = Always & Partial<OfCopies> & Source & { readonly json: boolean }

const flagOf: Readonly<Record<string, string>> = {
  canaryWait: "canary-wait",
  stopAbove: "stop-above",
  ignoreMaxReplays: "ignore-max-replays"
}

/** The request, or the first thing that no plan takes, before the cluster is asked. */
const requestOf = Effect.fnUntraced(function* (action: ReplayPlan.PlanRequest["action"], given: Given) {
  yield* checkReason(given.reason)
  const select = yield* Selection.read(given)
  const { by, tier, transform, rate, canary, canaryWait, stopAbove, ignoreMaxReplays } = given
  const optional = Object.entries({ by, tier, transform, rate, canary, canaryWait, stopAbove }).flatMap(
    ([name, value]) => (value !== undefined && Option.isSome<string | number>(value) ? [[name, value.value]] : [])
  )
  const request = {
    ...{ action, select, reason: given.reason, ...Object.fromEntries(optional) },
    ...(ignoreMaxReplays === true ? { ignoreMaxReplays } : {})
  }
  const [issue] = ReplayPlan.issues(request)
  if (issue === undefined) return request as ReplayPlan.PlanRequest
  const { path, found, allowed } = issue
  return yield* refuseUsage(`--${flagOf[path] ?? path} is ${found}; allowed is ${allowed}`)
})

/** Makes a plan, tells it on standard error, and applies it. */
const planned = Effect.fnUntraced(function* (action: ReplayPlan.PlanRequest["action"], given: Given) {
  const request = yield* requestOf(action, given)
  const receipt = yield* withRuns(given, (runs) =>
    Effect.gen(function* () {
      const plan = yield* aside(runs.plan(request))
      yield* Console.error(planText(plan))
      return yield* aside(runs.apply(plan.id))
    })
  )
  yield* ended(receipt, given.json)
})

export const plan = Command.make(
  "plan",
  {
    ...all,
    action: Flag.Literals("action", actions).pipe(Flag.withDescription("What for"), Flag.withDefault("replay"))
  },
  Effect.fnUntraced(function* ({ action, ...given }) {
    const request = yield* requestOf(action, given)
    const made = yield* withRuns(given, (runs) => aside(runs.plan(request)))
    yield* Console.log(given.json ? jsonText(made) : planText(made))
  })
).pipe(
  Command.withShortDescription("Says what a run would do with dead letters"),
  Command.withDescription(
    "Makes a plan over the dead letters that meet all flags, and says how many there are, where they would go and which would stay. 'dlt apply' applies it, within 15 minutes."
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

export const discard = Command.make("discard", { ...shared, ...always }, (given) => planned("discard", given)).pipe(
  Command.withShortDescription("Gives dead letters up"),
  Command.withDescription(
    "Gives dead letters up: they stay in the topic, and no replay takes them any more until 'dlt restore' brings them back."
  ),
  Command.withExamples([
    { command: 'eventbus dlt discard app.yaml orders --at 3@17 --reason "a test order"', description: "One" }
  ])
)

export const restore = Command.make("restore", { ...shared, ...always }, (given) => planned("restore", given)).pipe(
  Command.withShortDescription("Brings dead letters back that were given up"),
  Command.withDescription("Letters that were given up wait again, and every replay by command takes them."),
  Command.withExamples([
    { command: 'eventbus dlt restore app.yaml orders --at 3@17 --reason "no test at all"', description: "One" }
  ])
)
