/**
 * `eventbus fleet`: all processes of a fleet, its holds, and the last releases.
 */
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { refuseUsage } from "./failures.ts"
import * as Flags from "./flags.ts"
import * as FleetOperator from "./fleetOperator.ts"
import { viewText } from "./fleetText.ts"
import * as Target from "./target.ts"
import { jsonText } from "./text.ts"

export const fleet = Command.make(
  "fleet",
  {
    file: Argument.optional(Flags.file),
    profile: Flags.profile,
    cluster: Flags.cluster,
    url: Target.url,
    json: Flags.json
  },
  Effect.fnUntraced(function* ({ file, json, ...source }) {
    if (Option.isSome(file) === Option.isSome(source.url))
      return yield* refuseUsage("name the configuration, or a running process by --url, and not both")
    const found = yield* FleetOperator.view(source, Option.getOrUndefined(file))
    yield* Console.log(json ? jsonText(found) : viewText(found))
  })
).pipe(
  Command.withShortDescription("Shows all processes of a fleet"),
  Command.withDescription(
    "Shows all processes of a fleet with their versions, which of them are stale, who holds which binding and why, and who has released one."
  ),
  Command.withExamples([
    { command: "eventbus fleet app.yaml", description: "Straight on the cluster" },
    { command: "eventbus fleet --url http://localhost:8080", description: "As a process sees it" }
  ])
)
