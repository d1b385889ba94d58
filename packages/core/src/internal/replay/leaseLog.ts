/**
 * Reads the leases of a group's replays from the journal, and tells which of them live.
 *
 * A lease is over 15 seconds after its last entry. Two clocks decide, whichever tells first, and neither is another process's: the cluster's, by the append times in a
 * journal that has them, and this process's monotonic one, from the moment that it saw the entry. The clock of a broker may be ahead, and stamps entries until another one
 * leads the partition: so the newest record tells the cluster's time, not the latest time, and only as far as this process's wall clock agrees.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as Clocks from "../base/clocks.ts"
import * as JournalTail from "./journalTail.ts"
import * as Entries from "./leaseEntries.ts"

/** A lease that is not renewed for so long is over. */
export const leaseMillis = 15_000

export interface LeaseLog {
  /** Reads to the end of the journal, past `least`, and answers the other runs whose lease is not over, the first one first. */
  readonly others: (least: bigint) => Effect.Effect<ReadonlyArray<Entries.LeaseEntry>, BrokerError>
}

export const open = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topic: string,
  groupId: string,
  run: string
): Effect.fn.Return<LeaseLog, BrokerError, Scope.Scope> {
  const clock = yield* Clock.Clock
  const elapsedMillis = Clocks.stopwatch(clock)
  const entries = new Map<string, Entries.LeaseEntry>()
  let newestMillis = 0
  // Leases are written without a transaction, and a replay's open one must not hide them.
  const { toEnd } = yield* JournalTail.open(broker, topic, "read_uncommitted", (record) => {
    newestMillis = Entries.appendedMillisOf(record) ?? newestMillis
    Entries.apply(entries, groupId, record, elapsedMillis())
  })

  const others: LeaseLog["others"] = Effect.fnUntraced(function* (least) {
    // A process that is suspended after it has read takes nobody for dead.
    const beganMillis = elapsedMillis()
    yield* toEnd(least)
    const clusterMillis = Math.min(newestMillis, clock.currentTimeMillisUnsafe())
    const isLive = ({ seenMillis, appendedMillis }: Entries.LeaseEntry): boolean =>
      beganMillis - seenMillis < leaseMillis &&
      (appendedMillis === undefined || clusterMillis - appendedMillis < leaseMillis)
    return Array.from(entries)
      .filter(([other, each]) => other !== run && isLive(each))
      .map(([, each]) => each)
      .sort((one, other) => (one.claim < other.claim ? -1 : 1))
  })
  return { others }
})
