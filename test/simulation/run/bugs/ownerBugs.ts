/**
 * Planted bugs about the owners of copies (ruling 71).
 */
import type { Scenario } from "../../scenario/Scenario.ts"
import { chunks, withHeader } from "../sabotage.ts"
import type { PlantedBug } from "./PlantedBug.ts"

const mark = "x-eventbus-copy-owner"

/** Both services of the topic have retry topics, of which the first has one name. */
const sharesRetryTopic = ({ bindings }: Scenario): boolean =>
  bindings.some(({ service, tiers }) => service === 1 && tiers.length > 0) && bindings[0]!.tiers.length > 0

export const ownerBugs: ReadonlyArray<PlantedBug> = [
  {
    title: "handles the copies of every group in a shared retry topic",
    // A tier believes the replay count of a copy with a mark alone.
    seenBy: ["foreign-calls", "foreign-results", "replay-counts"],
    needs: sharesRetryTopic,
    sabotage: {
      events: chunks((chunk) => [
        {
          ...chunk,
          records: chunk.records.map((record) => ({
            ...record,
            headers: record.headers.filter(({ key }) => key !== mark)
          }))
        }
      ])
    }
  },
  {
    title: "passes its own copies over as those of another group",
    seenBy: ["routes", "losses"],
    needs: ({ bindings }) => bindings.some(({ tiers }) => tiers.length > 0),
    sabotage: {
      events: chunks((chunk) => [
        {
          ...chunk,
          records: chunk.records.map((record) => ({
            ...record,
            headers: record.headers.map((header) =>
              header.key === mark ? { key: mark, value: new TextEncoder().encode(`${record.topic}/others`) } : header
            )
          }))
        }
      ])
    }
  },
  {
    title: "marks its copies with the name of another group",
    seenBy: ["marks"],
    sabotage: { copies: (copy) => [withHeader(copy, mark, `${copy.topic}/others`)] }
  }
]
