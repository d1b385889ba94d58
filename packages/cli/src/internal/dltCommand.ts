/**
 * `eventbus dlt`: the dead letters of a binding, straight from its cluster: by the reason of their failure, one by one, and rehearsed.
 */
import { Command } from "effect/cli"
import { groups } from "./dltGroups.ts"
import { list } from "./dltList.ts"
import { rehearse } from "./dltRehearse.ts"
import { show } from "./dltShow.ts"

export const dlt = Command.make("dlt").pipe(
  Command.withShortDescription("Shows and rehearses dead letters"),
  Command.withDescription(
    "Shows the dead letters of a binding, and what today's code would do with them. Reads the cluster, and changes nothing."
  ),
  Command.withSubcommands([groups, list, show, rehearse])
)
