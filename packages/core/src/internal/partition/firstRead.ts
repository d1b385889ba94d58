/**
 * When a group first read a topic. `autoOffsetReset: "latest"` means "from then on", for each partition that the group has no committed offset of (ruling 85).
 *
 * The time stands in the metadata of the group's commits, so every member finds it, and a topic that is made again, whose commits the broker has deleted, counts as
 * never read. The first version writes no metadata, and ignores it.
 */
import type { CommittedOffset } from "../../Broker.ts"

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
  const times = own.flatMap(({ metadata }) => parse(metadata) ?? [])
  return times.length === 0 ? { _tag: "unknown" } : { _tag: "since", millis: Math.min(...times) }
}

const prefix = "eventbus:first-read="

/** The metadata of a commit. Readers ignore whatever stands behind a semicolon, for versions to come. */
export const format = (millis: number): string => `${prefix}${Math.trunc(millis)}`

const written = /^eventbus:first-read=(\d{1,15})(;|$)/

const parse = (metadata: string): number | undefined => {
  const millis = written.exec(metadata)?.[1]
  return millis === undefined ? undefined : Number(millis)
}
