/**
 * `eventbus outbox`: the dead events of an outbox, straight in its database: by the reason of their failure, one by one, and dealt with by plans.
 */
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { checkReason, reason } from "../dlt/dltRuns.ts"
import { refuse } from "../failures.ts"
import { jsonText } from "../text.ts"
import { apply, receipt } from "./deadApply.ts"
import { shared, withOperator } from "./deadEvents.ts"
import { groups } from "./deadGroups.ts"
import { list } from "./deadList.ts"
import { plan } from "./deadPlan.ts"
import { show } from "./deadShow.ts"
import { eventId } from "./eventSelection.ts"

const dead = Command.make("dead").pipe(
  Command.withShortDescription("Shows dead events, and deals with them by plans"),
  Command.withDescription("Shows the dead events of an outbox, and replays or discards them by plans."),
  Command.withSubcommands([groups, list, show, plan, apply, receipt])
)

const replay = Command.make(
  "replay",
  { ...shared, reason, eventId },
  Effect.fnUntraced(function* ({ outbox, json, reason, eventId }) {
    yield* checkReason(reason)
    const replayed = yield* withOperator({ outbox }, (operator, { change }) =>
      change(
        { action: "outboxReplay", permissions: ["replay"], reason, target: { event: eventId } },
        operator.replay(eventId, reason)
      )
    )
    if (json) yield* Console.log(jsonText({ eventId, replayed }))
    if (!replayed) return yield* refuse(`no dead event has the id ${eventId}`)
    if (!json) yield* Console.log(`event ${eventId} is replayed: it is delivered again`)
  })
).pipe(
  Command.withShortDescription("Replays one dead event"),
  Command.withDescription(
    "Makes a dead event NEW again, so that the outbox delivers it. Exit code 1 when no dead event has the id."
  ),
  Command.withExamples([
    { command: 'eventbus outbox replay --outbox ./outbox.ts o-17 --reason "INC-1204"', description: "At once" }
  ])
)

export const outbox = Command.make("outbox").pipe(
  Command.withShortDescription("Shows and replays dead events of an outbox"),
  Command.withDescription(
    "Shows the dead events of an outbox and deals with them, straight in the database that the module of --outbox opens."
  ),
  Command.withSubcommands([dead, replay])
)
