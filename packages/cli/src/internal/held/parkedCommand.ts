/**
 * `eventbus parked`: the keys of a group whose records wait in order (`orderingMode: "PER_KEY"`), and the decision of an operator about one that is held. Any process of the group
 * answers, by its admin API.
 */
import type * as ParkedAnswers from "@eventbus/admin/ParkedAnswers"
import { DeadLetterSelection, LogFormat } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import { checkReason } from "../dlt/dltRuns.ts"
import * as Flags from "../flags.ts"
import { atProcess } from "../runningProcess.ts"
import * as Target from "../target.ts"
import { columns, counted, jsonText } from "../text.ts"

const binding = Argument.String("binding").pipe(Argument.withDescription("The binding, or cluster:binding"))

const decisionFlags = {
  binding,
  position: Argument.String("partition@offset").pipe(
    Argument.withDescription("The held record, as 'parked list' names it: the decision is about exactly this one")
  ),
  url: Target.requiredUrl,
  reason: Flag.String("reason").pipe(
    Flag.withAlias("r"),
    Flag.withDescription("Why, for the record: the log of the process has it, and the audit log")
  ),
  topic: Flag.String("topic").pipe(
    Flag.withDescription("The source of the record, for a binding of several topics. Default: the first one"),
    Flag.optional
  ),
  json: Flags.json
}

interface Decision {
  readonly binding: string
  readonly position: string
  readonly url: string
  readonly reason: string
  readonly topic: Option.Option<string>
  readonly json: boolean
}

const decided = (verb: "retryParked" | "skipParked") =>
  Effect.fnUntraced(function* ({ binding: name, position, url, reason, topic, json }: Decision) {
    yield* checkReason(reason)
    const at = DeadLetterSelection.formatPosition(yield* Flags.positionOf("the position", position))
    const request = { params: { name, position: at }, query: { reason, ...Flags.given("topic", topic) } }
    const found = yield* atProcess(url, ({ client: { parked }, asked }) => asked(parked[verb](request)))
    yield* Console.log(json ? jsonText(found) : decisionText(found))
  })

const decisionText = ({ key: { position, topic }, by }: ParkedAnswers.ParkedDecision): string => {
  const how = by === "here" ? "the process has begun" : "the owner of its partition reads it in the first retry topic"
  return `${LogFormat.oneLine(topic)} ${position} is decided about: ${how}`
}

const list = Command.make(
  "list",
  {
    ...{ binding, url: Target.requiredUrl, json: Flags.json },
    limit: Flag.Int("limit").pipe(Flag.withDescription("Most keys, 1 to 500. Default 100"), Flag.optional),
    page: Flag.String("page").pipe(Flag.withDescription("'next' of the answer before"), Flag.optional)
  },
  Effect.fnUntraced(function* ({ binding: name, url, json, limit, page }) {
    const query = { ...Flags.given("limit", limit), ...Flags.given("page", page) }
    const found = yield* atProcess(url, ({ client: { parked }, asked }) =>
      asked(parked.parked({ params: { name }, query }))
    )
    yield* Console.log(json ? jsonText(found) : textOf(found))
  })
).pipe(
  Command.withShortDescription("Lists the parked keys of the group"),
  Command.withDescription(
    "Lists the keys whose records wait in order, those that are held first: behind which record, since when, how many follow, and why."
  ),
  Command.withExamples([{ command: "eventbus parked list orders --url http://localhost:8080", description: "All" }])
)

const example = (verb: string, description: string) => [
  { command: `eventbus parked ${verb} orders 3@1204 --url http://localhost:8080 --reason "INC-1204"`, description }
]

const retry = Command.make("retry", decisionFlags, decided("retryParked")).pipe(
  Command.withShortDescription("Handles a record that holds its key again"),
  Command.withDescription(
    "Handles exactly the record at this position again, and then what follows it, in order. Exit code 1 when it holds no key any more."
  ),
  Command.withExamples(example("retry", "The cause is removed"))
)

const skip = Command.make("skip", decisionFlags, decided("skipParked")).pipe(
  Command.withShortDescription("Dead-letters a record that holds its key"),
  Command.withDescription(
    "Sends exactly the record at this position to the dead letter topic, for the reason that it has, and its key goes on. Exit code 1 when it holds no key any more."
  ),
  Command.withExamples(example("skip", "To be repaired later"))
)

const acceptLoss = Command.make(
  "accept-loss",
  {
    ...{ binding, url: Target.requiredUrl, reason: decisionFlags.reason, json: Flags.json },
    keys: Flag.Int("keys").pipe(
      Flag.withDescription(
        "How many keys 'parked list' shows as stranded: nothing is done when there are more or fewer"
      )
    )
  },
  Effect.fnUntraced(function* ({ binding: name, url, reason, keys, json }) {
    yield* checkReason(reason)
    const request = { params: { name }, query: { keys, reason } }
    const found = yield* atProcess(url, ({ client: { parked }, asked }) => asked(parked.acceptParkedLoss(request)))
    yield* Console.log(
      json ? jsonText(found) : `the loss of ${counted(found.keys, "stranded key is", "stranded keys are")} accepted`
    )
  })
).pipe(
  Command.withShortDescription("Lets partitions run whose parked keys are stranded"),
  Command.withDescription(
    "Dead-letters the records of all stranded keys, so that their partitions run. What followed these keys in the former topic or cluster is not found again. Exit code 1 when their number is another one."
  ),
  Command.withExamples([
    {
      command: 'eventbus parked accept-loss orders --keys 3 --url http://localhost:8080 --reason "INC-1204"',
      description: "The topic was made again"
    }
  ])
)

export const parked = Command.make("parked").pipe(
  Command.withShortDescription("Shows parked keys, and decides about those that are held"),
  Command.withDescription(
    "Shows the keys whose records wait in order (orderingMode PER_KEY), and retries or skips a record that holds its key."
  ),
  Command.withSubcommands([list, retry, skip, acceptLoss])
)

const textOf = ({ keys, counts, orderingMode, next }: ParkedAnswers.AllParked): string => {
  const { held, waiting, draining, stranded } = counts
  const all = held + waiting + draining + stranded
  const parksNone = `The binding parks no keys: its orderingMode is ${orderingMode}`
  const isAsked = orderingMode === "PER_KEY"
  if (all === 0 && !isAsked) return parksNone
  return [
    `${counted(all, "key is", "keys are")} parked: ${held} held, ${waiting} waiting, ${draining} draining${stranded === 0 ? "" : `, ${stranded} stranded`}`,
    ...(isAsked ? [] : [`${parksNone}. Those that were parked before go on in order`]),
    ...columns(keys.map(lineOf)),
    ...(next === undefined ? [] : [`more: --page ${next}`])
  ].join("\n")
}

const lineOf = (parked: ParkedAnswers.ParkedKey) => {
  const { position, topic, state, key, since, due, exceptionClass, message, followers, hasMoreFollowers } = parked
  const why = [exceptionClass, message].filter((part) => part !== undefined && part !== "").join(": ")
  const behind = followers === undefined ? "" : `${followers}${hasMoreFollowers ? " or more" : ""} behind it`
  return [position, topic, state, key ?? "", `since ${since}`, due === undefined ? "" : `due ${due}`, behind, why].map(
    LogFormat.oneLine
  )
}
