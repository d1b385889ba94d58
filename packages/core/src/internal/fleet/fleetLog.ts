/** The fleet topic as operators read it: the newest heartbeat of each process, and the answers to commands. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as Format from "../base/entryFormat.ts"
import * as JournalTail from "../replay/journalTail.ts"
import * as LeaseEntries from "../replay/leaseEntries.ts"
import * as Acks from "./ackEntries.ts"
import type { ClusterClock } from "./clusterClock.ts"
import * as Heartbeats from "./heartbeatEntries.ts"

/** A heartbeat as it was read. */
export interface ReadHeartbeat {
  readonly decoded: Format.Decoded<Heartbeats.HeartbeatEntry>
  /** When the cluster appended it, epoch milliseconds. */
  readonly atMillis: number
}

export interface FleetLog {
  /** By the ids of the processes. */
  readonly processes: Map<string, ReadHeartbeat>
  /** By command, then by process. */
  readonly acks: ReadonlyMap<string, ReadonlyMap<string, Acks.AckEntry>>
  /** How many records were read. */
  readonly records: () => number
  /** Reads to the end of the topic, and at least past the offset `least`. */
  readonly readOn: (least?: bigint) => Effect.Effect<void, BrokerError>
}

/** Opens the topic. Nothing is read yet. */
export const open = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topic: string,
  clock: ClusterClock
): Effect.fn.Return<FleetLog, BrokerError, Scope.Scope> {
  const processes = new Map<string, ReadHeartbeat>()
  const acks = new Map<string, Map<string, Acks.AckEntry>>()
  let records = 0
  const { toEnd } = yield* JournalTail.open(broker, topic, "read_uncommitted", (record) => {
    records++
    clock.newest(LeaseEntries.appendedMillisOf(record))
    const key = Format.textOf(record.key)
    const id = Heartbeats.idOf(key)
    if (id === undefined) Acks.apply(acks, key, record.value)
    else if (record.value === null) processes.delete(id)
    else processes.set(id, { decoded: Heartbeats.decode(record.value), atMillis: record.timestamp })
  })
  return { processes, acks, records: () => records, readOn: toEnd }
})
