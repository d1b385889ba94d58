/**
 * `eventbus dlt`: the dead letters of a binding, straight from its cluster or by the admin API of a running process: by the reason of their failure, one by one, rehearsed, and dealt with by plans and runs.
 */
import * as Command from "effect/cli/Command"
import { apply, resume } from "./dltApply.ts"
import { groups } from "./dltGroups.ts"
import { list } from "./dltList.ts"
import { discard, plan, restore, run } from "./dltPlan.ts"
import { purge } from "./dltPurge.ts"
import { rehearse } from "./dltRehearse.ts"
import { cancel, pause, rate, receipt, runs } from "./dltRuns.ts"
import { show } from "./dltShow.ts"

export const dlt = Command.make("dlt").pipe(
  Command.withShortDescription("Shows, rehearses and replays dead letters"),
  Command.withDescription(
    "Shows the dead letters of a binding, says what today's code would do with them, and deals with them by plans and runs."
  ),
  Command.withSubcommands([
    ...([groups, list, show, rehearse] as const),
    ...([plan, apply, run, discard, restore, purge] as const),
    ...([runs, receipt, pause, resume, cancel, rate] as const)
  ])
)
