/**
 * Planted bugs about topics that are deleted and made again (rulings 77 and 85).
 */
import type { Broker } from "@eventbus/core"
import { Effect } from "effect"
import { hasRemakes } from "../../scenario/remakes.ts"
import type { Scenario } from "../../scenario/Scenario.ts"
import type { PlantedBug } from "./PlantedBug.ts"

const remakesMainTopic = ({ actions, bindings }: Scenario): boolean =>
  actions.some((action) => action._tag === "Remake" && action.topic === bindings[0]!.topic)

const withoutMetadata = (commit: Broker.CommittedOffset): Broker.CommittedOffset => ({ ...commit, metadata: "" })

export const remakeBugs: ReadonlyArray<PlantedBug> = [
  {
    title: "knows a record by topic, partition and offset alone",
    seenBy: ["ignored"],
    needs: (scenario) => remakesMainTopic(scenario) && scenario.bindings[0]!.isIdempotent,
    changeKey: (key) => key.replace(/@\d+$/, "")
  },
  {
    title: "goes on in a new topic where it was in the former one",
    seenBy: ["ignored", "settling", "leftovers", "progress"],
    needs: (scenario) => hasRemakes(scenario) && remakesMainTopic(scenario),
    sabotage: { positions: "kept" }
  },
  {
    title: "takes an offset that was committed for a former topic",
    seenBy: ["ignored"],
    needs: hasRemakes,
    sabotage: {
      events: () => (event) =>
        Effect.succeed([event._tag === "Assigned" ? { ...event, commits: event.commits.map(withoutMetadata) } : event])
    }
  }
]
