/**
 * `eventbus dlt purge`: deletes old dead letters from their topic.
 */
import { Settings } from "@eventbus/config"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { refuseUsage } from "../failures.ts"
import * as Target from "../target.ts"
import { counted, jsonText } from "../text.ts"
import { topic, withOperator } from "./deadLetters.ts"

export const purge = Command.make(
  "purge",
  {
    ...Target.shared(),
    topic,
    olderThan: Flag.String("older-than").pipe(
      Flag.withMetavar("age"),
      Flag.withDescription("A duration such as 7d or 12 hours, or a time: ISO-8601 with Z or an offset")
    )
  },
  Effect.fnUntraced(function* ({ olderThan, json, ...source }) {
    const target = yield* Target.read(source, [])
    const before = Settings.parseCutoff(olderThan, yield* Clock.currentTimeMillis)
    if (Number.isNaN(before)) {
      return yield* refuseUsage(
        `--older-than is "${olderThan}"; allowed is a duration such as 7d, or a time in ISO-8601 that is not in the future`
      )
    }
    const report = yield* withOperator(source, target, (operator) => operator.purge(before))
    yield* Console.log(json ? jsonText(report) : `${counted(report.purged, "dead letter")} deleted`)
  })
).pipe(
  Command.withShortDescription("Deletes old dead letters"),
  Command.withDescription(
    "Deletes the dead letters that are older than this from their topic, for good, as far as no younger one lies before them. Nothing is deleted when one of another group is among them."
  ),
  Command.withExamples([
    { command: "eventbus dlt purge app.yaml orders --older-than 30d", description: "Those of the last month stay" }
  ])
)
