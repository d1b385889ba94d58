/**
 * `eventbus plan`: the topics, consumers and retries that a configuration implies, and the differences to the clusters.
 */
import { Configuration } from "@eventbus/config"
import { type Binding, type Broker, Plan } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Clusters from "./clusters.ts"
import * as ConfigurationFile from "./configurationFile.ts"
import { CommandFailed, exitCodes, refuse } from "./failures.ts"
import * as Flags from "./flags.ts"
import { planText } from "./planText.ts"

/** A plan with the findings on its cluster, if the cluster was checked. */
interface Report {
  readonly plan: Plan.Plan
  readonly findings?: ReadonlyArray<Plan.Finding>
  /** Why the cluster could not be checked. */
  readonly unreachable?: string
}

export const plan = Command.make(
  "plan",
  {
    file: Flags.file,
    profile: Flags.profile,
    binding: Flag.String("binding").pipe(
      Flag.withMetavar("name"),
      Flag.withDescription("Only this binding; may be repeated. Default: all"),
      Flag.between(0, 1_000)
    ),
    check: Flag.Boolean("check").pipe(
      Flag.withDescription("Checks the clusters of the file without changing them, and prints what is missing"),
      Flag.withDefault(false)
    ),
    cluster: Flags.cluster,
    json: Flags.json
  },
  Effect.fnUntraced(function* ({ file, profile, binding, check, cluster, json }) {
    const configuration = yield* ConfigurationFile.readValid({ file, profile })
    const bindings = yield* select(Configuration.withoutHandlers(configuration), binding)
    const reports =
      check || Option.isSome(cluster.brokers)
        ? yield* Effect.provide(Effect.forEach(bindings, look), yield* Clusters.layer(configuration, cluster))
        : bindings.map((each): Report => ({ plan: Plan.make(each) }))
    yield* Console.log(json ? JSON.stringify({ plans: reports.map(flat) }, null, 2) : reports.map(text).join("\n\n"))
    yield* conclude(reports)
  })
).pipe(
  Command.withShortDescription("Prints what the bindings imply, and what a cluster lacks for them"),
  Command.withDescription(
    "Prints the topics, consumers, retry times and memory that each binding implies; with --check or --brokers also what the cluster lacks."
  ),
  Command.withExamples([
    { command: "eventbus plan app.yaml", description: "From the file alone" },
    { command: "eventbus plan app.yaml --check", description: "Against the clusters that the file names" },
    {
      command: "eventbus plan app.yaml --brokers localhost:9092 --json",
      description: "Against this one, for a program"
    }
  ])
)

const select = Effect.fnUntraced(function* (
  bindings: ReadonlyArray<Binding.Binding<never>>,
  names: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<Binding.Binding<never>>, CommandFailed> {
  const known = bindings.map(({ name }) => name)
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0) return yield* refuse(`no binding '${unknown.join("', '")}'; the file has ${known.join(", ")}`)
  return names.length === 0 ? bindings : bindings.filter(({ name }) => names.includes(name))
})

const look = (binding: Binding.Binding<never>): Effect.Effect<Report, never, Broker.Broker> => {
  const plan = Plan.make(binding)
  return Effect.match(Plan.check(plan), {
    onSuccess: (findings) => ({ plan, findings }),
    onFailure: ({ message }) => ({ plan, unreachable: message })
  })
}

const flat = ({ plan, ...seen }: Report) => ({ ...plan, ...seen })

const text = ({ plan, findings, unreachable }: Report): string =>
  planText(
    plan,
    unreachable === undefined ? findings?.map(({ severity, message }) => [severity, message]) : [["error", unreachable]]
  )

/** Fails without a message, since the printed plan states the reasons. */
const conclude = (reports: ReadonlyArray<Report>): Effect.Effect<void, CommandFailed> => {
  if (reports.some(({ unreachable }) => unreachable !== undefined)) {
    return Effect.fail(new CommandFailed({ message: "", code: exitCodes.unavailable }))
  }
  const isRefused = reports.some(({ findings = [] }) => findings.some(({ severity }) => severity === "error"))
  return isRefused ? refuse("") : Effect.void
}
