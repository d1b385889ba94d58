/**
 * Which records of a binding are not done, meaning handled and committed, and why, in words.
 */
import { type Binding, type ConsumerRecord, type EventBusConnector, TopicName } from "@eventbus/core"
import { Effect } from "effect"
import type { TestCluster } from "../target/testCluster.ts"
import type { Chronicle, Entry, RecordEvent } from "./chronicle.ts"
import { error, time } from "./trailText.ts"

type Definition = Binding.Binding<unknown>["definition"]
type Snapshot = EventBusConnector.BindingSnapshot

/** The first record of a partition that is not done. */
export interface Stuck {
  readonly binding: string
  readonly record: ConsumerRecord.ConsumerRecord
  /** Records behind it in its partition. */
  readonly behind: number
  readonly reason: string
}

/** What is looked at. */
export interface Scene {
  readonly cluster: TestCluster
  readonly chronicle: Chronicle
  readonly nowMillis: () => number
  /** Epoch milliseconds at which the bus began. */
  readonly begunMillis: number
}

interface Source {
  readonly topic: string
  readonly groupId: string
}

/** What the binding reads, and as which group. */
export const sources = ({ topic, groupId, tiers, retry }: Definition): ReadonlyArray<Source> => [
  { topic, groupId },
  ...tiers.topics.map((tier) => ({
    topic: tier.topic,
    groupId: retry.consumer === "separate" ? TopicName.retryGroup(groupId) : groupId
  }))
]

/** Whether the binding has committed to the end of everything that it reads. Cheap; false also when only markers are left. */
export const isThrough: (scene: Scene, definition: Definition) => Effect.Effect<boolean> = Effect.fnUntraced(
  function* (scene, definition) {
    for (const { topic, groupId } of sources(definition)) {
      const ends = yield* scene.cluster.ends(topic)
      const committed = yield* scene.cluster.committed(groupId, topic)
      for (const [partition, end] of ends) {
        if (position(scene, definition, topic, partition, committed) < end) return false
      }
    }
    return true
  }
)

/** One entry for each partition that has records which are not done. */
export const find: (
  scene: Scene,
  definition: Definition,
  snapshot: Snapshot | undefined
) => Effect.Effect<ReadonlyArray<Stuck>> = Effect.fnUntraced(function* (scene, definition, snapshot) {
  const stuck: Array<Stuck> = []
  for (const { topic, groupId } of sources(definition)) {
    const committed = yield* scene.cluster.committed(groupId, topic)
    const records = yield* scene.cluster.records(topic)
    const pending = records.filter(
      ({ partition, offset }) => offset >= position(scene, definition, topic, partition, committed)
    )
    for (const [first, ...rest] of Map.groupBy(pending, ({ partition }) => partition).values()) {
      if (first === undefined) continue
      const reason = why(scene, definition, snapshot, first)
      stuck.push({ binding: definition.name, record: first, behind: rest.length, reason })
    }
  }
  return stuck
})

/** Where the group stands: its commit, or where it began to read. */
const position = (
  { chronicle }: Scene,
  { name }: Definition,
  topic: string,
  partition: number,
  committed: ReadonlyMap<number, bigint>
): bigint => {
  const known = committed.get(partition)
  if (known !== undefined && known >= 0n) return known
  for (const { event } of chronicle.ofPartition(name, { topic, partition })) {
    if (event._tag === "PartitionAssigned") return event.position
  }
  return 0n
}

const why = (
  scene: Scene,
  definition: Definition,
  snapshot: Snapshot | undefined,
  record: ConsumerRecord.ConsumerRecord
): string => {
  const last = scene.chronicle.ofRecord(definition.name, record).at(-1)
  const reasons = [
    ofState(definition, snapshot),
    ofTierPause(definition, snapshot, record),
    last === undefined ? undefined : ofRecord(scene, definition, last),
    ofBreaker(scene, definition),
    last === undefined ? ofDelay(scene, definition, record) : undefined,
    ofOwner(scene, definition, record)
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
  { tiers }: Definition,
  snapshot: Snapshot | undefined,
  record: ConsumerRecord.ConsumerRecord
): string | undefined => {
  const tier = tiers.ofTopic(record.topic)
  const paused = snapshot?.pausedTiers.find((n) => tier !== undefined && n >= tier.first && n <= tier.last)
  return paused === undefined ? undefined : `tier ${paused} is paused by itself`
}

const ofRecord = (scene: Scene, definition: Definition, { atMillis, event }: Entry<RecordEvent>): string => {
  switch (event._tag) {
    case "Started":
      return `its handler has been running since ${time(atMillis)}`
    case "AttemptFailed": {
      const failed = `attempt ${event.attempt} failed (${error(event.failure)})`
      const { retryInMillis } = event
      return retryInMillis === undefined ? failed : `${failed}, the next one is at ${time(atMillis + retryInMillis)}`
    }
    case "PublishFailed":
      return `its copy was refused by ${event.topic}, attempt ${event.attempt}: ${event.error.message}`
    case "Settled":
      return ofSettled(scene, definition, atMillis, event)
  }
}

const ofSettled = (
  { chronicle }: Scene,
  { ackMode, commitIntervalMillis }: Definition,
  atMillis: number,
  { settlement, failure }: Extract<RecordEvent, { readonly _tag: "Settled" }>
): string => {
  const because = failure === undefined ? "" : ` (${error(failure)})`
  switch (settlement) {
    case "Halted":
      return `it halted its partition at ${time(atMillis)}${because}, until the binding is resumed`
    case "HeldByBreaker":
      return "it is kept until the circuit breaker lets it be tried again"
    case "Abandoned":
      return "its partition was given up before it was done"
    default: {
      const refused = chronicle.of("CommitFailed").findLast((entry) => entry.atMillis >= atMillis)
      const commits = ackMode === "MANUAL" ? `: commits go out every ${time(commitIntervalMillis)}` : ""
      const trouble = refused === undefined ? commits : `: ${refused.event.error.message}`
      return `it was ${done[settlement]} at ${time(atMillis)} and is not committed${trouble}`
    }
  }
}

const done = { Handled: "handled", Routed: "routed", DeadLettered: "dead-lettered", Skipped: "skipped" } as const

const ofBreaker = ({ chronicle, begunMillis }: Scene, { name }: Definition): string | undefined => {
  const change = chronicle.of("BreakerChanged").findLast(({ event }) => event.binding === name)
  if (change === undefined || change.event.to === "CLOSED") return undefined
  const { nextProbeAtMillis } = change.event.snapshot
  const probe = nextProbeAtMillis === undefined ? "" : `, next probe at ${time(nextProbeAtMillis - begunMillis)}`
  return `the circuit breaker is ${change.event.to} since ${time(change.atMillis)}${probe}`
}

const ofDelay = (
  { nowMillis, begunMillis }: Scene,
  { tiers }: Definition,
  record: ConsumerRecord.ConsumerRecord
): string | undefined => {
  const tier = tiers.ofTopic(record.topic)
  if (tier === undefined) return undefined
  const dueMillis = record.timestamp - begunMillis + tier.delayMillis
  const remaining = dueMillis - nowMillis()
  return remaining > 0 ? `it waits in tier ${tier.first}, due at ${time(dueMillis)} (in ${time(remaining)})` : undefined
}

/** Why nobody reads the partition. */
const ofOwner = (
  { chronicle }: Scene,
  { name }: Definition,
  { topic, partition }: ConsumerRecord.TopicPartition
): string | undefined => {
  if (chronicle.owner(name, { topic, partition })?._tag === "PartitionAssigned") return undefined
  const crash = chronicle.of("SessionCrashed").findLast(({ event }) => event.binding === name)
  const trouble =
    crash === undefined ? "" : `; its consumer crashed at ${time(crash.atMillis)}: ${crash.event.error.message}`
  return `no consumer has partition ${topic}-${partition}${trouble}`
}
