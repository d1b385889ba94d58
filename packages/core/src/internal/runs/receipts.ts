/** Runs as their operators see them. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { Receipt, RunState, RunSummary } from "../../ReplayRun.ts"
import { isoText } from "../base/isoText.ts"
import * as RunEnd from "./runEnd.ts"
import * as Entries from "./runEntries.ts"
import * as RunFate from "./runFate.ts"
import * as RunJournal from "./runJournal.ts"
import type { Options } from "./runOptions.ts"
import * as Workers from "./workers.ts"

/** A plan that was applied. */
export type Applied = Entries.Told & {
  readonly plan: Entries.At<Entries.PlanEntry>
  readonly run: Entries.At<Entries.RunEntry>
}

export const isApplied = (told: Entries.Told | undefined): told is Applied =>
  told?.plan !== undefined && told.run !== undefined

export const isOver = (state: RunState): boolean => state === "done" || state === "cancelled"

/** A pause or a cancellation that no process has obeyed yet shows at once. */
export const stateOf = ({ run, ...told }: Applied): Pick<RunSummary, "state" | "stateReason"> => {
  const { state, stateReason } = run.entry
  const halt = isOver(state) ? undefined : Entries.pendingHalt({ run, ...told })
  if (halt === undefined) return { state, stateReason }
  return { state: halt.verb === "pause" ? "paused" : "cancelled", stateReason: halt.reason }
}

/** A run that says that it is running is worked on, or is left to whoever resumes it. */
const workedOn = (told: Applied, abandonedSince: Workers.AbandonedSince) => {
  const shown = stateOf(told)
  const abandonedSinceMillis = shown.state === "running" ? abandonedSince(told) : undefined
  if (abandonedSinceMillis === undefined) return { ...shown, abandonedSinceMillis }
  const since = isoText(abandonedSinceMillis)
  return { ...shown, stateReason: `no process works on it since ${since}; resume it`, abandonedSinceMillis }
}

export const summaryOf = (told: Applied, abandonedSince: Workers.AbandonedSince): RunSummary => {
  const { plan, run, rate, id } = told
  const { action, tier, transform, reason, by, count } = plan.entry
  const { refused, refusals, startedAt, host, pid } = run.entry
  return {
    ...{ id, action, tier, transform, reason, by, count, ...workedOn(told, abandonedSince) },
    ...{ dealtWith: Entries.takenOf(told), refused, refusals: new Map(Object.entries(refusals)) },
    ...{ rate: rate?.entry.rate ?? plan.entry.rate, startedAtMillis: startedAt, host, pid },
    updatedAtMillis: run.millis
  }
}

/** The receipt by now. One that closes is kept, so that it stays what it is when its letters are purged. */
export const read = Effect.fnUntraced(function* (
  options: Options,
  admin: Admin,
  journal: RunJournal.RunJournal,
  told: Applied
): Effect.fn.Return<Receipt, BrokerError, Scope.Scope> {
  const summary = summaryOf(told, yield* Workers.read(options, journal))
  if (told.closed !== undefined) {
    const { v: _, ...counts } = told.closed.entry
    return { ...summary, ...counts, waiting: 0, closed: true }
  }
  if (isOver(summary.state) && told.run.entry.state === "running") yield* RunEnd.write(options, journal, told)
  const { look } = yield* RunFate.open(options, admin, told.plan.entry, told)
  const { passed, cameBack, elsewhere, waiting, unknown } = yield* look
  const counts = { passed, cameBack, elsewhere, ...(unknown === 0 ? {} : { unknown }) }
  // A process may be about to obey a cancellation.
  const closed = isOver(stateOf(told).state) && told.run.entry.state !== "running" && waiting === 0
  if (closed) yield* keep(options, admin, journal, told.id, counts)
  return { ...summaryOf(told, yield* Workers.read(options, journal)), ...counts, waiting, closed }
})

/** A reader without the ACL to write reads the same again. */
const keep = (
  options: Options,
  admin: Admin,
  { topic }: RunJournal.RunJournal,
  id: string,
  counts: Omit<Entries.ClosedEntry, "v">
) => {
  const entry = { v: 1, ...counts }
  return Effect.ignore(RunJournal.write(options, admin, [Entries.record("closed", topic, id, options.groupId, entry)]))
}
