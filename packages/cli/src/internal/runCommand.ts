/**
 * `eventbus run`: runs the bindings of a configuration with the handlers of a module, until a signal.
 */
import { Configuration } from "@eventbus/config"
import { Effect, Layer, Logger, Predicate } from "effect"
import { Command, Flag } from "effect/cli"
import * as Clusters from "./clusters.ts"
import * as ConfigurationFile from "./configurationFile.ts"
import { CommandFailed, exitCodes } from "./failures.ts"
import * as Flags from "./flags.ts"
import * as HandlersModule from "./handlersModule.ts"

const loggers = { pretty: Logger.consolePretty(), json: Logger.consoleJson, logfmt: Logger.consoleLogFmt }

export const run = Command.make(
  "run",
  {
    file: Flags.file,
    handlers: HandlersModule.flag.pipe(
      Flag.withDescription("The module with the handlers: TypeScript or JavaScript, see Application.make")
    ),
    profile: Flags.profile,
    brokers: Flags.brokers,
    logFormat: Flag.Literals("log-format", ["pretty", "json", "logfmt"]).pipe(
      Flag.withDescription("How log lines look"),
      Flag.withDefault("pretty")
    )
  },
  Effect.fnUntraced(function* ({ file, handlers, profile, brokers, logFormat }) {
    const application = yield* HandlersModule.load(handlers)
    const configuration = yield* ConfigurationFile.readValid({ file, profile, handlers: application.handlers })
    const clusters = yield* Clusters.layer(configuration, brokers)
    const main = Configuration.layer(configuration, application.handlers).pipe(
      Layer.provide(application.layer),
      Layer.provide(clusters)
    )
    return yield* Layer.launch(main).pipe(Effect.mapError(failed), Effect.provide(Logger.layer([loggers[logFormat]])))
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
