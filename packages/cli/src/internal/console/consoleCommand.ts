/**
 * `eventbus console`: the console on this machine for the bindings of a file, straight on their clusters; or the address of the console of a running process.
 */
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as References from "effect/References"
import { readValid } from "../configurationFile.ts"
import { refuseUsage } from "../failures.ts"
import * as Flags from "../flags.ts"
import * as OutboxModule from "../outbox/outboxModule.ts"
import * as Target from "../target.ts"
import { jsonText } from "../text.ts"
import type { Options } from "./consoleOptions.ts"

const flags = {
  file: Argument.optional(Flags.file),
  profile: Flags.profile,
  cluster: Flags.cluster,
  url: Target.url,
  port: Flag.Int("port").pipe(Flag.withDescription("The port of the page. Default: a free one"), Flag.optional),
  host: Flag.String("host").pipe(
    Flag.withDescription("The address to listen on. Default: 127.0.0.1; another one needs --payload or --write"),
    Flag.optional
  ),
  payload: Flag.Boolean("payload").pipe(
    Flag.withDescription("Shows keys, values and messages to the bearer of a token, which the printed address has"),
    Flag.withDefault(false)
  ),
  write: Flag.Boolean("write").pipe(
    Flag.withDescription("Lets the bearer of such a token do everything else, too. Default: nothing can be changed"),
    Flag.withDefault(false)
  ),
  outbox: OutboxModule.flag.pipe(Flag.optional),
  json: Flags.json
}

export const consoleCommand = Command.make(
  "console",
  flags,
  Effect.fnUntraced(function* ({ file, url, json, ...options }) {
    if (Option.isSome(file) === Option.isSome(url))
      return yield* refuseUsage("name the configuration, or a running process by --url, and not both")
    if (Option.isSome(url)) return yield* ofProcess(url.value, options, json)
    yield* checkPlace(options)
    const configuration = yield* readValid({ file: Option.getOrThrow(file), profile: options.profile })
    const { serve } = yield* Effect.promise(() => import("./consoleServer.ts"))
    return yield* Effect.provideService(serve(configuration, { ...options, json }), References.LogToStderr, true)
  })
).pipe(
  Command.withShortDescription("Opens the console, straight on Kafka"),
  Command.withDescription(
    "Serves the console on this machine for the bindings of a configuration, straight on their clusters, until Ctrl-C. It runs no binding, loads no handlers, joins no group, and commits no offset of a group that consumes. With --url it prints the address of the console of a running process."
  ),
  Command.withExamples([
    { command: "eventbus console app.yaml", description: "To look" },
    { command: "eventbus console app.yaml --write", description: "To plan and apply runs, and to command the fleet" },
    {
      command: "eventbus console app.yaml --outbox ./outbox.ts",
      description: "With the dead events of an outbox"
    },
    { command: "eventbus console --url http://localhost:8080", description: "The console of a process" }
  ])
)

const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/.test(host)

/** Without a token the API answers callers on this machine alone. */
const checkPlace = Effect.fnUntraced(function* ({ port, host, payload, write }: Options) {
  if (Option.exists(port, (number) => number < 0 || number > 65_535))
    return yield* refuseUsage("--port takes a port, from 0 to 65535; 0 is a free one")
  if (Option.exists(host, (address) => !isLoopback(address)) && !payload && !write)
    return yield* refuseUsage(
      "--host lets other machines in, and without a token the console answers this machine alone; --payload or --write makes a token"
    )
})

/** The console of a process knows more than any other page could, so its own address is the answer. */
const ofProcess = Effect.fnUntraced(function* (
  url: string,
  { profile, cluster, port, host, payload, write, outbox }: Options,
  json: boolean
) {
  const others =
    [cluster.brokers, cluster.transport, port, host, outbox].some((flag) => Option.isSome<unknown>(flag)) ||
    profile.length > 0 ||
    payload ||
    write
  if (others) return yield* refuseUsage("--url has no other flag beside it but --json: the process serves its own page")
  const { addressOf } = yield* Effect.promise(() => import("../remote/consoleAddress.ts"))
  const address = yield* addressOf(url)
  yield* Console.log(json ? jsonText({ url: address }) : address)
})
