/**
 * `eventbus run`: runs the bindings of a configuration with the handlers of a module, until a signal.
 */
import { Configuration } from "@eventbus/config"
import { Effect, Layer, Logger, Option, Predicate } from "effect"
import { Command, Flag } from "effect/cli"
import * as Clusters from "./clusters.ts"
import * as ConfigurationFile from "./configurationFile.ts"
import { CommandFailed, exitCodes, refuseUsage } from "./failures.ts"
import * as Flags from "./flags.ts"
import * as HandlersModule from "./handlersModule.ts"
import { loggers } from "./logFormats.ts"

export const run = Command.make(
  "run",
  {
    file: Flags.file,
    handlers: HandlersModule.flag.pipe(
      Flag.withDescription("The module with the handlers: TypeScript or JavaScript, see Application.make")
    ),
    profile: Flags.profile,
    brokers: Flags.brokers,
    log: Flag.Literals("log", ["text", "json", "pretty"]).pipe(
      Flag.withDescription("The form of the log: text and json have one line a record, pretty has several"),
      Flag.withDefault("text")
    ),
    logFormat: Flag.String("log-format").pipe(Flag.withHidden, Flag.optional)
  },
  Effect.fnUntraced(function* ({ file, handlers, profile, brokers, log, logFormat }) {
    if (Option.isSome(logFormat)) return yield* refuseUsage("--log-format was renamed: use --log text, json or pretty")
    const application = yield* HandlersModule.load(handlers)
    const configuration = yield* ConfigurationFile.readValid({ file, profile, handlers: application.handlers })
    const clusters = yield* Clusters.layer(configuration, brokers)
    const main = Configuration.layer(configuration, application.handlers).pipe(
      Layer.provide(application.layer),
      Layer.provide(clusters)
    )
    return yield* Layer.launch(main).pipe(Effect.mapError(failed), Effect.provide(Logger.layer([loggers[log]])))
  })
).pipe(
  Command.withShortDescription("Runs the bindings of a configuration"),
  Command.withDescription(
    "Runs the bindings of a configuration. SIGTERM and Ctrl-C let running handlers end, commit, and leave the groups."
  ),
  Command.withExamples([
    { command: "eventbus run app.yaml --handlers ./handlers.ts", description: "On the clusters that the file names" },
    {
      command: "eventbus run app.yaml --handlers ./handlers.ts --brokers localhost:9092",
      description: "On a broker near by"
    }
  ])
)

/** The failure of the connector, or of the program's own layer. */
const failed = (error: unknown): CommandFailed =>
  new CommandFailed({
    message: Predicate.hasProperty(error, "message") ? String(error.message) : String(error),
    code: exitCodes.refused
  })
