/**
 * `eventbus trail`: the path of one record through main topic, retry topics and dead letter topic, read from the cluster.
 */
import { Configuration } from "@eventbus/config"
import { Broker, Clusters as CoreClusters, Plan, Trail } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Clusters from "./clusters.ts"
import * as ConfigurationFile from "./configurationFile.ts"
import { type CommandFailed, refuse, refuseUsage, unavailable } from "./failures.ts"
import * as Flags from "./flags.ts"
import { jsonText } from "./text.ts"

export const trail = Command.make(
  "trail",
  {
    file: Flags.file,
    binding: Argument.String("binding").pipe(Argument.withDescription("The binding that reads the record's topic")),
    key: Flag.String("key").pipe(
      Flag.withAlias("k"),
      Flag.withDescription("The newest record with this key, as UTF-8 text; reads all of the topic"),
      Flag.optional
    ),
    at: Flag.String("at").pipe(
      Flag.withMetavar("partition@offset"),
      Flag.withDescription("The record at this position of the main topic, such as 3@17"),
      Flag.optional
    ),
    topic: Flag.String("topic").pipe(
      Flag.withMetavar("name"),
      Flag.withDescription("The topic of the record, where the binding reads several"),
      Flag.optional
    ),
    profile: Flags.profile,
    cluster: Flags.cluster,
    json: Flags.json
  },
  Effect.fnUntraced(function* ({ file, binding: name, key, at, topic, profile, cluster, json }) {
    const selector = yield* selectorOf(key, at)
    const configuration = yield* ConfigurationFile.readValid({ file, profile })
    const binding = yield* ConfigurationFile.bindingNamed(Configuration.withoutHandlers(configuration), name)
    const plan = Plan.make(binding)
    const hops = yield* find(plan, yield* sourceOf(plan, topic), selector).pipe(
      Effect.provide(yield* Clusters.layer(configuration, cluster))
    )
    if (json) yield* Console.log(jsonText({ hops }))
    else if (hops.length > 0) yield* Console.log(Trail.format(hops))
    if (hops.length === 0) return yield* refuse(json ? "" : "no topic holds such a record any more")
  })
).pipe(
  Command.withShortDescription("Follows one record through its topics"),
  Command.withDescription(
    "Follows one record through main topic, retry topics, dead letter topic and replays, a line for each copy."
  ),
  Command.withExamples([
    { command: "eventbus trail app.yaml orders --key o-1", description: "By its key" },
    { command: "eventbus trail app.yaml orders --at 3@17", description: "By partition and offset" }
  ])
)

/** The topic of the record: that of the binding, or the named one of several. */
const sourceOf = (plan: Plan.Plan, topic: Option.Option<string>): Effect.Effect<string, CommandFailed> => {
  const known = plan.topics.filter(({ role }) => role === "source").map((each) => each.topic)
  const [first = "", ...others] = known
  if (Option.isNone(topic) && others.length === 0) return Effect.succeed(first)
  return Option.isSome(topic) && known.includes(topic.value)
    ? Effect.succeed(topic.value)
    : refuseUsage(
        `--topic is ${Option.match(topic, { onNone: () => "missing", onSome: (text) => `"${text}"` })}; allowed is ${known.join(", ")}`
      )
}

const find = (plan: Plan.Plan, source: string, selector: Trail.Selector) =>
  Effect.gen(function* () {
    const broker = yield* CoreClusters.get(plan.cluster)
    const named = (role: Plan.PlannedTopic["role"]) =>
      plan.topics.filter((each) => each.role === role && each.source === source).map(({ topic }) => topic)
    const topics: Trail.Topics = {
      topic: source,
      groupId: plan.groupId,
      adopts: plan.adopts,
      retryTopics: named("retry"),
      deadLetterTopic: named("dead-letter")[0]
    }
    return yield* Effect.provideService(Trail.trail(topics, selector), Broker.Broker, broker)
  }).pipe(unavailable)

const selectorOf = (
  key: Option.Option<string>,
  at: Option.Option<string>
): Effect.Effect<Trail.Selector, CommandFailed> => {
  if (Option.isSome(key) === Option.isSome(at)) return refuseUsage("name the record by --key or by --at, not by both")
  if (Option.isSome(key)) return Effect.succeed({ key: key.value })
  return Flags.positionOf(
    "--at",
    Option.getOrElse(at, () => "")
  )
}
