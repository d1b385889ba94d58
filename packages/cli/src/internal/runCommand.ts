/**
 * `eventbus run`: runs the bindings of a configuration with the handlers of a module, until a signal.
 */
import { Configuration } from "@eventbus/config"
import type { Broker, EventBusConnector } from "@eventbus/core"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
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
    cluster: Flags.cluster,
    log: Flag.Literals("log", ["text", "json", "pretty"]).pipe(
      Flag.withDescription("The form of the log: text and json have one line a record, pretty has several"),
      Flag.withDefault("text")
    ),
    http: Flag.Int("http").pipe(
      Flag.withMetavar("port"),
      Flag.withDescription(
        "Serves /health/live, /health/ready and /metrics on this port, and the admin API, read-only, to callers on this machine"
      ),
      Flag.optional
    ),
    logFormat: Flag.String("log-format").pipe(Flag.withHidden, Flag.optional)
  },
  Effect.fnUntraced(function* ({ file, handlers, profile, cluster, log, http, logFormat }) {
    if (Option.isSome(logFormat)) return yield* refuseUsage("--log-format was renamed: use --log text, json or pretty")
    if (Option.exists(http, (port) => port < 0 || port > 65_535)) {
      return yield* refuseUsage("--http takes a port, from 0 to 65535; 0 is a free one")
    }
    const application = yield* HandlersModule.load(handlers)
    const configuration = yield* ConfigurationFile.readValid({ file, profile, handlers: application.handlers })
    const clusters = yield* Clusters.layer(configuration, cluster)
    const bindings = Configuration.layer(configuration, application.handlers)
    const main = (yield* served(bindings, http)).pipe(Layer.provide(application.layer), Layer.provide(clusters))
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
    },
    {
      command: "eventbus run app.yaml --handlers ./handlers.ts --http 8080",
      description: "With probes, metrics and the admin API"
    }
  ])
)

/** The bindings, inside of a server where a port is given. */
const served = <E, R>(
  bindings: Layer.Layer<EventBusConnector.EventBusConnector, E, R | Broker.Broker>,
  port: Option.Option<number>
): Effect.Effect<Layer.Layer<EventBusConnector.EventBusConnector, unknown, R | Broker.Broker>> =>
  Option.match(port, {
    onNone: () => Effect.succeed(bindings),
    onSome: (value) =>
      Effect.map(
        Effect.promise(() => import("./httpServer.ts")),
        ({ around }) => around(bindings, value)
      )
  })

/** The failure of the connector, or of the program's own layer. */
const failed = (error: unknown): CommandFailed =>
  new CommandFailed({
    message: Predicate.hasProperty(error, "message") ? String(error.message) : String(error),
    code: exitCodes.refused
  })
