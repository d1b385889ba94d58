/**
 * `eventbus status`: the bindings of a running process, and what is wrong with them.
 */
import type * as Answers from "@eventbus/admin/Answers"
import type * as BindingAnswers from "@eventbus/admin/BindingAnswers"
import { LogFormat } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { Failed } from "./dlt/operator.ts"
import { refuse } from "./failures.ts"
import * as Flags from "./flags.ts"
import { type Asking, atProcess } from "./runningProcess.ts"
import * as Target from "./target.ts"
import { columns, counted, indent, jsonText } from "./text.ts"

const watchInterval = "2 seconds"

export const status = Command.make(
  "status",
  {
    url: Target.requiredUrl,
    watch: Flag.Boolean("watch").pipe(
      Flag.withAlias("w"),
      Flag.withDescription("Prints it again every two seconds, until Ctrl-C"),
      Flag.withDefault(false)
    ),
    json: Flags.json
  },
  Effect.fnUntraced(function* ({ url, watch, json }) {
    yield* atProcess(url, (asking) => (watch ? Effect.forever(watched(asking, json)) : shown(asking, json)))
  })
).pipe(
  Command.withShortDescription("Shows the bindings of a running process"),
  Command.withDescription(
    "Shows the bindings of a running process by its admin API: state, lag, records that wait in retry topics, dead letters, breaker, who holds it and why, the newest failure, and what is wrong. Exit code 1 when its health is not UP."
  ),
  Command.withExamples([
    { command: "eventbus status --url http://localhost:8080", description: "Now" },
    { command: "eventbus status --url http://localhost:8080 --watch", description: "Every two seconds" }
  ])
)

interface Status {
  readonly health: Answers.HealthReport
  readonly bindings: ReadonlyArray<Answers.BindingSummary>
}

/** `messages`: with the messages of failures. The audit log of the process has a line for each look at them, so `--watch` does without. */
const look = ({ client, asked }: Asking, messages: boolean): Effect.Effect<Status, Failed> =>
  Effect.all({
    health: asked(client.bindings.health()),
    bindings: asked(client.bindings.list({ query: messages ? { messages: "true" } : {} }))
  })

const print = (found: Status, json: boolean) => Console.log(json ? jsonText(found) : statusText(found))

const shown = Effect.fnUntraced(function* (asking: Asking, json: boolean) {
  const found = yield* look(asking, true)
  yield* print(found, json)
  if (found.health.status !== "UP") return yield* refuse("")
})

const watched = Effect.fnUntraced(function* (asking: Asking, json: boolean) {
  yield* print(yield* look(asking, false), json)
  yield* Effect.sleep(watchInterval)
})

export const bindingText = (binding: Answers.BindingSummary): ReadonlyArray<string> => {
  const { key, since, pausedBy, pausedTiers, holds = [], lag, retries, deadLetters = 0, breaker, outside } = binding
  const state = outside === undefined ? binding.state : "not run here"
  return [
    key,
    [state, ...(pausedBy.length === 0 ? [] : [`(${pausedBy.join(", ")})`])].join(" "),
    outside === undefined ? `since ${since}` : "",
    lag === undefined ? "lag not known" : `lag ${lag}`,
    retries === undefined ? "" : retriesText(retries),
    deadLetters === 0 ? "" : counted(deadLetters, "dead letter"),
    outside?.members === undefined ? "" : counted(outside.members, "member"),
    pausedTiers.length === 0 ? "" : `paused ${pausedTiers.map((tier) => `tier ${tier}`).join(", ")}`,
    breaker === undefined ? "" : `breaker ${breaker}`,
    holds.map(holdText).join("; ")
  ].map(LogFormat.oneLine)
}

/** Such as `of it 12 in retries (tier 1: 10, tier 2: 2)`. The topics of a tier, of which a binding of several topics has several, count together. */
const retriesText = (retries: ReadonlyArray<BindingAnswers.WaitingRetries>): string => {
  const tiers = new Map<number, number>()
  for (const { tier, waiting } of retries) tiers.set(tier, (tiers.get(tier) ?? 0) + waiting)
  const all = Array.from(tiers.values()).reduce((sum, waiting) => sum + waiting, 0)
  if (all === 0) return ""
  const each = Array.from(tiers).flatMap(([tier, waiting]) => (waiting === 0 ? [] : [`tier ${tier}: ${waiting}`]))
  return `of it ${all} in retries (${each.join(", ")})`
}

/** Most characters of a message. `--json` has more of it. */
const longestMessage = 200

/** No line where no key is held. */
const heldKeyLines = ({ name, heldKeys }: Answers.BindingSummary): ReadonlyArray<string> => {
  if (heldKeys === undefined) return []
  const { count, oldest, since } = heldKeys
  const held = `${counted(count, "key is", "keys are")} held, the oldest since ${since} by ${oldest}`
  return [indent(1, LogFormat.oneLine(`${held}: 'eventbus parked list ${name}' lists them`))]
}

/** No line where nothing has failed. */
const failureLines = ({ newestFailure }: Answers.BindingSummary): ReadonlyArray<string> => {
  if (newestFailure === undefined) return []
  const { exceptionClass, message = "", position, origin, at } = newestFailure
  const cut = message.length > longestMessage ? `${message.slice(0, longestMessage - 1)}…` : message
  const error = cut === "" ? exceptionClass : `${exceptionClass}: ${cut}`
  const from = origin === undefined ? "" : `, first ${origin}`
  return [indent(1, LogFormat.oneLine(`newest failure ${at}  ${position}${from}  ${error}`))]
}

const holdText = ({ tier, by, reason, condition }: Answers.BindingHold): string =>
  condition === undefined
    ? `${tier === undefined ? "held" : `tier ${tier} held`} by ${by}: ${reason}`
    : `held in this process: ${reason}`

const statusText = ({ health, bindings }: Status): string =>
  [
    health.outside
      ? `This console looks at ${counted(bindings.length, "binding")} from outside, and does not know how the processes that run them are`
      : `${health.status}: ${counted(bindings.length, "binding")}${health.ready ? "" : ", not ready"}`,
    ...health.reasons.map(({ message }) => LogFormat.oneLine(message)),
    ...columns(bindings.map(bindingText)).flatMap((line, at) => [
      line,
      ...bindings.slice(at, at + 1).flatMap((binding) => [...heldKeyLines(binding), ...failureLines(binding)])
    ])
  ].join("\n")
