/**
 * Ends a run that was cancelled while no process works on it: one that was killed or interrupted obeys nobody. Until its end is written, it might go on.
 */
import * as Effect from "effect/Effect"
import type { BrokerError } from "../../BrokerError.ts"
import * as Attempts from "../replay/replayAttempts.ts"
import * as Entries from "./runEntries.ts"
import type { RunJournal } from "./runJournal.ts"
import type { Options } from "./runOptions.ts"

/**
 * Writes the end under the lease, which fences a process that was only suspended. Does nothing while somebody has the lease, such as a process that is about to obey, or for
 * want of a right: the next reader tries again.
 */
export const write = (options: Options, journal: RunJournal, told: Entries.Told): Effect.Effect<void, BrokerError> =>
  Attempts.withLease(
    { ...options, waitMillis: 0 },
    Attempts.newState(),
    Effect.fnUntraced(function* (lease) {
      yield* journal.load
      const { id, run, halt } = told
      if (run?.entry.state !== "running" || halt === undefined || Entries.pendingHalt(told)?.verb !== "cancel") return
      const entry: Entries.RunEntry = {
        ...{ ...run.entry, state: "cancelled", stateReason: halt.entry.reason },
        obeyed: String(halt.offset)
      }
      yield* Attempts.write(options, lease, [Entries.record("run", journal.topic, id, options.groupId, entry)])
    })
  ).pipe(Effect.ignore, Effect.andThen(journal.load))
