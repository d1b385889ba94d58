/**
 * Heartbeats in the fleet topic: `process/{id}` → JSON, every five seconds; a tombstone when the process ends.
 *
 * A heartbeat has at most 32 KiB. Bindings with standing partitions come first; those that do not fit are counted.
 */
import * as Schema from "effect/Schema"
import { ContainerState } from "../../EventBusError.ts"
import type { FleetBinding, StandingPartition } from "../../FleetView.ts"
import type { BindingSnapshot, PartitionSnapshot } from "../../Snapshot.ts"
import * as Format from "../base/entryFormat.ts"

/** A process writes a heartbeat so often. */
export const everyMillis = 5_000

const mostBytes = 32 * 1_024

/** Most characters of what keeps a process from knowing the holds. */
const longestControl = 1_000

const mostStanding = 20

/** A partition that has not moved for so long is told of. */
const standsAfterMillis = 60_000

const Standing = Schema.Struct({
  topic: Schema.String,
  partition: Schema.Int,
  position: Schema.String,
  lag: Schema.String,
  forMillis: Schema.Number,
  why: Schema.String
})

const Binding = Schema.Struct({
  name: Schema.String,
  cluster: Schema.String,
  groupId: Schema.String,
  state: ContainerState,
  pausedBy: Schema.Array(Schema.String),
  partitions: Schema.Int,
  lag: Schema.String,
  inFlight: Schema.Int,
  standing: Schema.Array(Standing)
})

const HeartbeatEntry = Schema.Struct({
  host: Schema.String,
  pid: Schema.Int,
  version: Schema.String,
  configHash: Schema.String,
  /** By the wall clock of the process, epoch milliseconds. */
  sentAt: Schema.Number,
  control: Schema.String,
  /** The offset in the control topic up to which the process obeys the holds. Absent while it knows none, and in heartbeats of versions that do not tell it. */
  obeys: Schema.optionalKey(Schema.String),
  bindings: Schema.Array(Binding),
  omitted: Schema.Int
})
export type HeartbeatEntry = typeof HeartbeatEntry.Type

export const decode = Format.decoder(HeartbeatEntry)

const form = /^process\/([^/]{1,128})$/

/** The id of the process whose heartbeat has this key. */
export const idOf = (key: string): string | undefined => form.exec(key)?.[1]

export const keyOf = (id: string): string => `process/${id}`

/** Encodes a heartbeat, with as many bindings as it has room for. */
export const encode = (
  head: Omit<HeartbeatEntry, "bindings" | "omitted">,
  snapshots: ReadonlyArray<BindingSnapshot>
): Uint8Array => {
  const all = toldOf(snapshots)
  const bindings: Array<FleetBinding> = []
  const short = { ...head, control: head.control.slice(0, longestControl) }
  let bytes = Format.encode({ ...short, bindings, omitted: all.length }).length
  for (const binding of all) {
    bytes += Format.bytesOf(JSON.stringify(binding)).length + 1
    if (bytes > mostBytes) break
    bindings.push(binding)
  }
  return Format.encode({ ...short, bindings, omitted: all.length - bindings.length })
}

/** The bindings as a heartbeat tells of them, those with standing partitions first. */
const toldOf = (snapshots: ReadonlyArray<BindingSnapshot>): ReadonlyArray<FleetBinding> => {
  const standing = snapshots
    .flatMap((snapshot) => standingOf(snapshot).map((partition) => ({ snapshot, partition })))
    .sort((one, other) => other.partition.forMillis - one.partition.forMillis)
    .slice(0, mostStanding)
  return snapshots
    .map((snapshot) => {
      const own = standing.flatMap(({ snapshot: of, partition }) => (of === snapshot ? [partition] : []))
      return bindingOf(snapshot, own)
    })
    .sort((one, other) => other.standing.length - one.standing.length)
}

const bindingOf = (
  { name, cluster, groupId, state, pausedBy, partitions }: BindingSnapshot,
  standing: ReadonlyArray<StandingPartition>
): FleetBinding => ({
  ...{ name, cluster, groupId, state, pausedBy, partitions: partitions.length, standing },
  lag: String(partitions.reduce((sum, partition) => sum + partition.lag, 0n)),
  inFlight: partitions.reduce((sum, partition) => sum + partition.inFlight, 0)
})

const standingOf = (snapshot: BindingSnapshot): ReadonlyArray<StandingPartition> =>
  snapshot.partitions.flatMap((at) => {
    const why = whyStanding(snapshot, at)
    if (why === undefined) return []
    const { topic, partition, position, lag, waitingMillis: forMillis } = at
    return [{ topic, partition, position: String(position), lag: String(lag), forMillis, why }]
  })

const whyStanding = ({ held }: BindingSnapshot, at: PartitionSnapshot): string | undefined => {
  if (held.some(({ topic, partition }) => topic === at.topic && partition === at.partition)) return "record"
  if (at.unreadable !== undefined) return "unreadable"
  if (at.openTransactionSinceMillis !== undefined) return "transaction"
  return at.pauses.length === 0 && at.waitingMillis >= standsAfterMillis ? "waiting" : undefined
}
