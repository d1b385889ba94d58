/** Leaves out what a group has committed in a topic that was deleted, when a topic of the same name is assigned. */
import type { AssignedPartition, CommittedOffset, ConsumerEvent } from "../../Broker.ts"
import * as CommitMetadata from "./commitMetadata.ts"

interface WithoutFormer {
  readonly assigned: AssignedPartition
  readonly commits: ReadonlyArray<CommittedOffset>
  /** True when the committed offset of the partition was one of a former topic. */
  readonly isFormer: boolean
}

/** An assignment without what the group has committed in a former topic of the same name. */
export const withoutCommits = (
  { commits }: Pick<Extract<ConsumerEvent, { readonly _tag: "Assigned" }>, "commits">,
  assigned: AssignedPartition,
  clusterId: string
): WithoutFormer => {
  const { topic, partition, topicId } = assigned
  const current = CommitMetadata.topicOf(clusterId, topicId)
  const own = commits.filter((commit) => commit.topic !== topic || !CommitMetadata.isOfFormerTopic(commit, current))
  const isFormer =
    assigned.committed !== undefined && !own.some((commit) => commit.topic === topic && commit.partition === partition)
  return { commits: own, isFormer, assigned: isFormer ? { ...assigned, committed: undefined } : assigned }
}
