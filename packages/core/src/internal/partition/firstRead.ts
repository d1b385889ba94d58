/**
 * When a group first read a topic. `autoOffsetReset: "latest"` means "from then on", for each partition that the group has no committed offset of (ruling 85).
 *
 * The time stands in the metadata of the group's commits, so every member finds it. A topic that is made again counts as never read.
 */
import type { CommittedOffset } from "../../Broker.ts"
import * as CommitMetadata from "./commitMetadata.ts"

/**
 * - `never`: the group has committed nothing in the topic.
 * - `since`: it first read the topic at `millis`, epoch milliseconds.
 * - `unknown`: it has committed, without a time: the first version did, or another client, or an operator.
 */
export type FirstRead =
  | { readonly _tag: "never" }
  | { readonly _tag: "since"; readonly millis: number }
  | { readonly _tag: "unknown" }

/** The group's commits in one topic, summed up. The earliest of several times counts. */
export const ofTopic = (commits: ReadonlyArray<CommittedOffset>, topic: string): FirstRead => {
  const own = commits.filter((commit) => commit.topic === topic)
  if (own.length === 0) return { _tag: "never" }
  const times = own.flatMap(({ metadata }) => CommitMetadata.parse(metadata).firstReadMillis ?? [])
  return times.length === 0 ? { _tag: "unknown" } : { _tag: "since", millis: Math.min(...times) }
}
