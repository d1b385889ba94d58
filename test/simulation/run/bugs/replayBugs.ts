/**
 * Planted bugs about replays (ruling 70).
 */
import type { ConsumerRecord } from "@eventbus/core"
import type { Scenario } from "../../scenario/Scenario.ts"
import { chunks, withHeader } from "../sabotage.ts"
import type { PlantedBug } from "./PlantedBug.ts"

const bond = "x-eventbus-replay-bond"
const group = "x-eventbus-replay-group"
const encoder = new TextEncoder()

const replays = ({ actions }: Scenario): boolean => actions.some(({ _tag }) => _tag === "Replay")

const claims = ({ actions }: Scenario): boolean =>
  actions.some((action) => action._tag === "Publish" && action.records.some(({ claim }) => claim !== undefined))

/** Rewrites the headers of fetched records that have a header. */
const rewritten = (
  name: string,
  rewrite: (record: ConsumerRecord.ConsumerRecord) => ReadonlyArray<ConsumerRecord.Header>
) =>
  chunks((chunk) => [
    {
      ...chunk,
      records: chunk.records.map((record) =>
        record.headers.some(({ key }) => key === name) ? { ...record, headers: rewrite(record) } : record
      )
    }
  ])

export const replayBugs: ReadonlyArray<PlantedBug> = [
  {
    title: "believes the marks of a replay without a bond",
    seenBy: ["routes", "origins", "replay-counts", "losses", "publishing"],
    needs: claims,
    sabotage: {
      // The bond that the record would have if a replay had published it.
      events: (clusterId) =>
        rewritten(group, ({ headers, topic, partition, timestamp }) => [
          ...headers.filter(({ key }) => key !== bond),
          { key: bond, value: encoder.encode(`${clusterId}/${topic}/${partition}/${timestamp}`) }
        ])()
    }
  },
  {
    title: "handles what another group replayed",
    // Its own replays have no bond either, so their next copies name a false origin.
    seenBy: ["foreign-calls", "foreign-results", "origins", "replay-counts"],
    needs: (scenario) => replays(scenario) && scenario.bindings.some(({ service }) => service === 1),
    sabotage: { events: rewritten(bond, ({ headers }) => headers.filter(({ key }) => key !== bond)) }
  },
  {
    title: "passes over what its own group replayed",
    seenBy: ["routes", "losses"],
    needs: replays,
    sabotage: {
      events: rewritten(bond, ({ headers }) =>
        headers.map((header) => (header.key === group ? { key: group, value: encoder.encode("others") } : header))
      )
    }
  },
  {
    title: "replays a dead letter twice",
    seenBy: ["replayed-once"],
    needs: replays,
    sabotage: { replays: (copy) => [copy, copy] }
  },
  {
    title: "counts a dead letter as replayed without a copy",
    seenBy: ["dealt-with"],
    needs: replays,
    sabotage: { replays: () => [] }
  },
  {
    title: "counts one replay too many",
    seenBy: ["replayed", "replayed-once"],
    needs: replays,
    sabotage: { replays: (copy) => [withHeader(copy, "x-eventbus-replay-count", "2")] }
  }
]
