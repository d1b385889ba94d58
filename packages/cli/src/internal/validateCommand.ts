/**
 * `eventbus validate`: prints every mistake of a configuration.
 */
import type { Configuration } from "@eventbus/config"
import type { EventBusError } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as ConfigurationFile from "./configurationFile.ts"
import { refuse } from "./failures.ts"
import * as Flags from "./flags.ts"
import * as HandlersModule from "./handlersModule.ts"
import { counted } from "./text.ts"

export const validate = Command.make(
  "validate",
  {
    file: Flags.file,
    profile: Flags.profile,
    handlers: HandlersModule.flag.pipe(
      Flag.withDescription("A module with handlers: also checks that each binding has a handler that fits"),
      Flag.optional
    ),
    json: Flags.json
  },
  Effect.fnUntraced(function* ({ file, profile, handlers, json }) {
    const app = yield* Effect.transposeOption(Option.map(handlers, HandlersModule.load))
    const checked = Option.map(app, ({ handlers }) => handlers)
    const result = yield* Effect.result(ConfigurationFile.read({ file, profile, ...Flags.given("handlers", checked) }))
    const issues = result._tag === "Failure" ? result.failure.issues : []
    if (json)
      yield* Console.log(JSON.stringify({ file, valid: issues.length === 0, issues: issues.map(flat) }, null, 2))
    else if (result._tag === "Success") yield* Console.log(summary(file, result.success))
    else yield* Console.log(ConfigurationFile.mistakes(file, issues))
    if (issues.length > 0) return yield* refuse("")
  })
).pipe(
  Command.withShortDescription("Checks a configuration, and prints every mistake"),
  Command.withDescription(
    "Checks a configuration and prints every mistake with its location, the value and the allowed values. Connects to no cluster."
  ),
  Command.withExamples([
    { command: "eventbus validate app.yaml", description: "The file, and app.yaml's includes" },
    {
      command: "eventbus validate app.yaml --profile prod --json",
      description: "With app-prod.yaml over it, for a program"
    }
  ])
)

const flat = ({ at, ...issue }: EventBusError.ConfigurationIssue) => ({ ...issue, ...at })

const summary = (file: string, { bindings, clusters }: Configuration.Configuration): string =>
  `${file}: no mistakes; ${counted(bindings.length, "binding")}, ${counted(clusters.length, "cluster")}`
