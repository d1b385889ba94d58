/**
 * The records of a binding that are not handled and committed, and the reasons in words.
 */
import { type ConsumerRecord, type Snapshot as Snapshots, TopicName } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { TestCluster } from "../target/testCluster.ts"
import type { EventRecorder, RecordEvent, RecordedEvent } from "./eventRecorder.ts"
import type { Definition } from "./sources.ts"
import * as Sources from "./sources.ts"
import { durationText, errorText } from "./trailText.ts"

type Snapshot = Snapshots.BindingSnapshot

/** The first record of a partition that is not done. */
interface Stuck {
  readonly binding: string
  readonly record: ConsumerRecord.ConsumerRecord
  /** Number of records behind it in its partition. */
  readonly behind: number
  readonly reason: string
}

/** The state of a bus that the reasons are read from. */
export interface BusState {
  readonly cluster: TestCluster
  readonly recorder: EventRecorder
  readonly nowMillis: () => number
  /** Epoch milliseconds of the bus's start. */
  readonly begunMillis: number
}

interface Subscription {
  readonly topic: string
  readonly groupId: string
}

/** The topics that the binding reads, each with its group. */
export const subscriptions = (definition: Definition): ReadonlyArray<Subscription> => {
  const { groupId, retry } = definition
  const tierGroup = retry.consumer === "separate" ? TopicName.retryGroup(groupId) : groupId
  return Sources.of(definition).flatMap(({ topic, tiers }) => [
    { topic, groupId },
    ...tiers.topics.map((tier) => ({ topic: tier.topic, groupId: tierGroup }))
  ])
}

/** Whether the binding has committed up to the end of every topic that it reads. Also false when only transaction markers are left. */
export const isCaughtUp: (bus: BusState, definition: Definition) => Effect.Effect<boolean> = Effect.fnUntraced(
  function* (bus, definition) {
    for (const { topic, groupId } of subscriptions(definition)) {
      const ends = yield* bus.cluster.ends(topic)
      const committed = yield* bus.cluster.committed(groupId, topic)
      for (const [partition, end] of ends) {
        if (position(bus, definition, topic, partition, committed) < end) return false
      }
    }
    return true
  }
)

/** One entry for each partition with records that are not done. */
export const find: (
  bus: BusState,
  definition: Definition,
  snapshot: Snapshot | undefined
) => Effect.Effect<ReadonlyArray<Stuck>> = Effect.fnUntraced(function* (bus, definition, snapshot) {
  const stuck: Array<Stuck> = []
  for (const { topic, groupId } of subscriptions(definition)) {
    const committed = yield* bus.cluster.committed(groupId, topic)
    const records = yield* bus.cluster.records(topic)
    const pending = records.filter(
      ({ partition, offset }) => offset >= position(bus, definition, topic, partition, committed)
    )
    for (const [first, ...rest] of Map.groupBy(pending, ({ partition }) => partition).values()) {
      if (first === undefined) continue
      const reason = reasonFor(bus, definition, snapshot, first)
      stuck.push({ binding: definition.name, record: first, behind: rest.length, reason })
    }
  }
  return stuck
})

/** The group's position: its commit, or its start position. */
const position = (
  { recorder }: BusState,
  { name }: Definition,
  topic: string,
  partition: number,
  committed: ReadonlyMap<number, bigint>
): bigint => {
  const known = committed.get(partition)
  if (known !== undefined && known >= 0n) return known
  for (const { event } of recorder.ofPartition(name, { topic, partition })) {
    if (event._tag === "PartitionAssigned") return event.position
  }
  return 0n
}

const reasonFor = (
  bus: BusState,
  definition: Definition,
  snapshot: Snapshot | undefined,
  record: ConsumerRecord.ConsumerRecord
): string => {
  const last = bus.recorder.ofRecord(definition.name, record).at(-1)
  const reasons = [
    ofState(definition, snapshot),
    ofTierPause(definition, snapshot, record),
    last === undefined ? undefined : ofRecord(bus, definition, last),
    ofBreaker(bus, definition),
    last === undefined ? ofDelay(bus, definition, record) : undefined,
    ofOwner(bus, definition, record)
  ].filter((reason) => reason !== undefined)
  return reasons.length > 0 ? reasons.join("; ") : "it was not handed to the handler yet"
}

const ofState = ({ name }: Definition, snapshot: Snapshot | undefined): string | undefined => {
  if (snapshot === undefined) return `binding '${name}' is not registered any more`
  if (snapshot.state === "RUNNING") return undefined
  const by = snapshot.pausedBy.length === 0 ? "" : ` by ${snapshot.pausedBy.join(" and ")}`
  return `binding '${name}' is ${snapshot.state}${by}`
}

const ofTierPause = (
  definition: Definition,
  snapshot: Snapshot | undefined,
  record: ConsumerRecord.ConsumerRecord
): string | undefined => {
  const tier = Sources.tierOf(definition, record.topic)
  const paused = snapshot?.pausedTiers.find((n) => tier !== undefined && n >= tier.first && n <= tier.last)
  return paused === undefined ? undefined : `tier ${paused} is paused by itself`
}

const ofRecord = (bus: BusState, definition: Definition, { atMillis, event }: RecordedEvent<RecordEvent>): string => {
  switch (event._tag) {
    case "Started":
      return `its handler has been running since ${durationText(atMillis)}`
    case "AttemptFailed": {
      const failed = `attempt ${event.attempt} failed (${errorText(event.failure)})`
      const { retryInMillis } = event
      return retryInMillis === undefined
        ? failed
        : `${failed}, the next one is at ${durationText(atMillis + retryInMillis)}`
    }
    case "PublishFailed":
      return `its copy was refused by ${event.topic}, attempt ${event.attempt}: ${event.error.message}`
    case "Settled":
      return ofSettled(bus, definition, atMillis, event)
  }
}

const ofSettled = (
  { recorder }: BusState,
  { ackMode, commitIntervalMillis }: Definition,
  atMillis: number,
  { settlement, failure }: Extract<RecordEvent, { readonly _tag: "Settled" }>
): string => {
  const because = failure === undefined ? "" : ` (${errorText(failure)})`
  switch (settlement) {
    case "Halted":
      return `it halted its partition at ${durationText(atMillis)}${because}, until the binding is resumed`
    case "HeldByBreaker":
      return "it is kept until the circuit breaker lets it be tried again"
    case "Abandoned":
      return "its partition was given up before it was done"
    default: {
      const refused = recorder.of("CommitFailed").findLast((entry) => entry.atMillis >= atMillis)
      const commits = ackMode === "MANUAL" ? `: commits go out every ${durationText(commitIntervalMillis)}` : ""
      const failure = refused === undefined ? commits : `: ${refused.event.error.message}`
      return `it was ${done[settlement]} at ${durationText(atMillis)} and is not committed${failure}`
    }
  }
}

const done = { Handled: "handled", Routed: "routed", DeadLettered: "dead-lettered", Skipped: "skipped" } as const

const ofBreaker = ({ recorder, begunMillis }: BusState, { name }: Definition): string | undefined => {
  const change = recorder.of("BreakerChanged").findLast(({ event }) => event.binding === name)
  if (change === undefined || change.event.to === "CLOSED") return undefined
  const { nextProbeAtMillis } = change.event.snapshot
  const probe =
    nextProbeAtMillis === undefined ? "" : `, next probe at ${durationText(nextProbeAtMillis - begunMillis)}`
  return `the circuit breaker is ${change.event.to} since ${durationText(change.atMillis)}${probe}`
}

const ofDelay = (
  { nowMillis, begunMillis }: BusState,
  definition: Definition,
  record: ConsumerRecord.ConsumerRecord
): string | undefined => {
  const tier = Sources.tierOf(definition, record.topic)
  if (tier === undefined) return undefined
  const dueMillis = record.timestamp - begunMillis + definition.tiers.waitMillis(tier.first, attemptOf(record))
  const remaining = dueMillis - nowMillis()
  return remaining > 0
    ? `it waits in tier ${tier.first}, due at ${durationText(dueMillis)} (in ${durationText(remaining)})`
    : undefined
}

/** The number of its delivery in the tier, as the copy says. */
const attemptOf = ({ headers }: ConsumerRecord.ConsumerRecord): number => {
  const told = headers.findLast(({ key }) => key === "x-eventbus-retry-attempt")?.value
  return Math.max(1, Number(new TextDecoder().decode(told ?? new Uint8Array())) || 1)
}

/** The reason why no consumer reads the partition. */
const ofOwner = (
  { recorder }: BusState,
  { name }: Definition,
  { topic, partition }: ConsumerRecord.TopicPartition
): string | undefined => {
  if (recorder.owner(name, { topic, partition })?._tag === "PartitionAssigned") return undefined
  const crash = recorder.of("SessionCrashed").findLast(({ event }) => event.binding === name)
  const failure =
    crash === undefined ? "" : `; its consumer crashed at ${durationText(crash.atMillis)}: ${crash.event.error.message}`
  return `no consumer has partition ${topic}-${partition}${failure}`
}
