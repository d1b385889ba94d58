/**
 * Opens assigned partitions where they are to start. Most open at once; a partition that starts at the time when its group first read the topic opens when its leader
 * has said which offset that is, unless it is given up before.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { AssignedPartition, ConsumerEvent } from "../../Broker.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import * as CommitMetadata from "../partition/commitMetadata.ts"
import type { OfOrder } from "../partition/commitText.ts"
import * as FirstRead from "../partition/firstRead.ts"
import * as FormerTopic from "../partition/formerTopic.ts"
import * as StartPosition from "../partition/startPosition.ts"
import * as Sources from "../settings/sources.ts"
import { reportGap } from "./reportGap.ts"
import * as Running from "./runningPartitions.ts"
import { unavailable } from "./topicInspection.ts"

type Assigned = Extract<ConsumerEvent, { readonly _tag: "Assigned" }>

export interface Starts {
  readonly assign: (event: Assigned, assigned: AssignedPartition) => Effect.Effect<void>
  /** Partitions that are given up: those that have not opened yet never do. */
  readonly forget: (partitions: ReadonlyArray<TopicPartition>) => void
  readonly forgetAll: () => void
}

/** The partitions whose commits say that keys may be parked there. */
const ordered = (event: Assigned, clusterId: string): ReadonlyArray<TopicPartition> =>
  event.partitions.filter((found) => {
    const { assigned, commits } = FormerTopic.withoutCommits(event, found, clusterId)
    const { epoch, parked } = orderOf(commits, assigned)
    return epoch !== undefined || parked !== undefined
  })

/** Waits between two questions for an offset: 100 ms doubling up to 5 s. */
const again = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("5 seconds")])

/** Where keys may be parked, the parts that run already end, and wait for their unit. */
export const requireUnits = <R>(partitions: Running.RunningPartitions<R>, event: Assigned): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { units, session } = partitions.options
    if (units === undefined) return Effect.void
    const wereNeeded = new Set(Running.list(partitions).filter(({ partition }) => units.needs(partition)))
    for (const at of event.partitions) units.expect(at)
    for (const at of ordered(event, session.clusterId)) units.require(at)
    const now = Running.list(partitions).filter((entry) => units.needs(entry.partition) && !wereNeeded.has(entry))
    return Effect.forEach(now, ({ partition }) => Running.restart(partitions, partition), { discard: true })
  })

export const make = <R>(partitions: Running.RunningPartitions<R>, scope: Scope.Scope): Starts => {
  const { context, session } = partitions.options
  const { definition } = context
  // Before the session joined: a partition that is added while it joins has nothing that is older.
  const sinceMillis = context.clock.currentTimeMillisUnsafe()
  /** By partition key: the assignments that wait for an offset. */
  const waiting = new Map<string, AssignedPartition>()

  const open = (
    { generation, commits }: Assigned,
    assigned: AssignedPartition,
    { position, anchored, gap }: StartPosition.StartPosition,
    firstReadMillis?: number
  ) => {
    const { topic, partition, logEnd, committed = -1n } = assigned
    const metadata = CommitMetadata.ofAssigned(assigned, session.clusterId, firstReadMillis)
    const finishedAhead = finishedBehind(commits, assigned, CommitMetadata.topicOf(session.clusterId, assigned.topicId))
    const former = orderOf(commits, assigned)
    const ofOrder = { ...former, isCutOff: mayLack(assigned) && (committed < position || former.isCutOff === true) }
    const at = { topic, partition, generation, position, anchored, committed, metadata, finishedAhead, ofOrder, logEnd }
    return Effect.andThen(Running.open(partitions, at), reportGap(context, { topic, partition, generation }, gap))
  }

  /** Whether locks may be gone from a partition with what was in it. */
  const mayLack = (at: AssignedPartition): boolean =>
    Sources.tierOf(definition, at.topic) !== undefined && partitions.options.units?.needs(at) === true

  const openAtTime = (event: Assigned, assigned: AssignedPartition, millis: number) => {
    const key = partitionKey(assigned.topic, assigned.partition)
    waiting.set(key, assigned)
    const opening = Effect.flatMap(offsetAt(partitions, assigned, millis), (position) => {
      if (waiting.get(key) !== assigned) return Effect.void
      waiting.delete(key)
      return open(event, assigned, { position, anchored: false, gap: undefined }, millis)
    })
    return Effect.asVoid(Effect.forkIn(Effect.catchDefect(opening, context.onDefect), scope))
  }

  return {
    assign: (event, found) => {
      const { assigned, commits, isFormer } = FormerTopic.withoutCommits(event, found, session.clusterId)
      const openAt = (start: StartPosition.StartPosition, firstReadMillis?: number) =>
        // The offset of the former topic is overwritten, also when reading starts at the earliest record.
        open(event, assigned, { ...start, anchored: start.anchored && !isFormer }, firstReadMillis)
      // A retry topic always starts at its earliest record: a copy may be published before the group reads the topic.
      const isRetry = Sources.tierOf(definition, assigned.topic) !== undefined
      if (isRetry || definition.autoOffsetReset === "earliest") {
        return openAt(StartPosition.afterAssignment(assigned, "earliest"))
      }
      const read = FirstRead.ofTopic(commits, assigned.topic)
      const millis = read._tag === "since" ? read.millis : sinceMillis
      if (assigned.committed === undefined && read._tag === "since") return openAtTime(event, assigned, millis)
      // A group that has read the topic never jumps to the end of a partition that is new to it.
      const start = StartPosition.afterAssignment(assigned, read._tag === "unknown" ? "earliest" : "latest")
      const anchored = start.anchored && assigned.committed !== undefined
      return openAt({ ...start, anchored }, millis)
    },
    forget: (given) => {
      for (const { topic, partition } of given) waiting.delete(partitionKey(topic, partition))
    },
    forgetAll: () => waiting.clear()
  }
}

/** The group's commit of this partition may tell which records behind the offset are finished. */
const finishedBehind = (
  commits: Assigned["commits"],
  { topic, partition }: AssignedPartition,
  topicOfLog: string | undefined
): string | undefined => {
  const commit = commits.find((each) => each.topic === topic && each.partition === partition)
  return commit && CommitMetadata.finishedOf(commit, topicOfLog)
}

/** The part of the group's commit of this partition that is about order per key. */
const orderOf = (commits: Assigned["commits"], { topic, partition }: AssignedPartition): OfOrder => {
  const commit = commits.find((each) => each.topic === topic && each.partition === partition)
  const { epoch, parked, isCutOff = false } = CommitMetadata.parse(commit?.metadata ?? "")
  return { epoch, parked, isCutOff }
}

/** The poller asks for the log ends of the same topic, and gets them where a search by time is refused. */
const offsetsOf = (topic: string): string => `${topic} (offsets by time)`

/** The first offset at or after a time, as the leader of the partition says; asked until it answers. */
const offsetAt = <R>(
  { options: { broker, context } }: Running.RunningPartitions<R>,
  { topic, partition, logStart }: AssignedPartition,
  millis: number
): Effect.Effect<bigint> =>
  Effect.scoped(Effect.flatMap(broker.admin, (admin) => admin.offsetsForTimestamp(topic, millis))).pipe(
    Effect.tapError((error) => Effect.sync(() => unavailable(context, topic, error, offsetsOf(topic)))),
    Effect.retry(again),
    Effect.orDie,
    Effect.ensuring(Effect.sync(() => context.failures.topics.worked(offsetsOf(topic)))),
    Effect.map((offsets) => offsets.find((each) => each.partition === partition)?.offset ?? logStart)
  )
