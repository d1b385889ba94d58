/**
 * Which run a process works on, by the leases in the journal. A run whose process is gone still says `running` in its last entry, and only its lease tells.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { BrokerError } from "../../BrokerError.ts"
import * as JournalTail from "../replay/journalTail.ts"
import * as LeaseEntries from "../replay/leaseEntries.ts"
import { leaseMillis } from "../replay/leaseLog.ts"
import type { Told } from "./runEntries.ts"
import type { RunJournal } from "./runJournal.ts"
import type { Options } from "./runOptions.ts"

/** Since when no process works on a run, epoch milliseconds. Undefined while one does, and for a run that does not say that it is running. */
export type AbandonedSince = (told: Told) => number | undefined

const nameOf = ({ host, pid }: { readonly host: string; readonly pid: number }): string => `${pid}@${host}`

/**
 * Reads the leases, where a run says that it is running. A process writes how its work ended before it gives its lease back, so the journal is read once more behind the
 * leases: a run is abandoned when its last entry is older than they are. A look writes nothing, so no entry tells the cluster's time: the clock of this process decides whether the last
 * renewal is too long ago.
 */
export const read = Effect.fnUntraced(function* (
  { broker, groupId }: Pick<Options, "broker" | "groupId">,
  journal: RunJournal
): Effect.fn.Return<AbandonedSince, BrokerError, Scope.Scope> {
  const running = journal.all().filter(({ run }) => run?.entry.state === "running")
  if (running.length === 0) return () => undefined
  const lastRead = newestOf(journal.all())
  const leases = new Map<string, LeaseEntries.LeaseEntry>()
  /** When the lease of a process was written last, its end included. */
  const heardMillis = new Map<string, number>()
  // Leases are written without a transaction, and the open one of a process that was killed must not hide them.
  const { toEnd } = yield* JournalTail.open(broker, journal.topic, "read_uncommitted", (record) => {
    const lease = LeaseEntries.apply(leases, groupId, record, 0)
    if (lease !== undefined) heardMillis.set(nameOf(lease.holder), record.timestamp)
  })
  yield* toEnd()
  const nowMillis = yield* Clock.currentTimeMillis
  const isHeld = (worker: string): boolean =>
    Array.from(leases.values()).some(({ holder }) => holder.holds && nameOf(holder) === worker) &&
    nowMillis - (heardMillis.get(worker) ?? 0) < leaseMillis
  // The end of a run that is still worked on may be hidden for long, by the open transaction of a process that was just killed.
  if (running.some(({ run }) => run !== undefined && !isHeld(nameOf(run.entry)))) yield* journal.load
  const newest = newestOf(journal.all())
  return ({ run }) => {
    if (run?.entry.state !== "running" || run.offset > lastRead) return undefined
    const worker = nameOf(run.entry)
    // Runs take turns: one that has written since had the lease after this one.
    if (run.offset === newest && isHeld(worker)) return undefined
    const heard = Math.max(run.millis, run.offset === newest ? (heardMillis.get(worker) ?? 0) : 0)
    // A journal of an older version has the times of its writers, which may be anything.
    return Math.min(Math.max(heard, 0), nowMillis)
  }
})

/** The offset of the newest entry of a run. */
const newestOf = (all: ReadonlyArray<Told>): bigint =>
  all.reduce((newest, { run }) => (run !== undefined && run.offset > newest ? run.offset : newest), -1n)
