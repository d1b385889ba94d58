/**
 * The history of single dead letters, as the journal of replays tells it: which runs have copied them, and who gave them up or brought them back.
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { LetterEvent } from "../../DeadLetterList.ts"
import type { Position } from "../../DeadLetterSelection.ts"
import type * as CopyOwner from "../record/copyOwner.ts"
import * as Audits from "../replay/replayAudits.ts"
import * as Positions from "../runs/positions.ts"
import * as RunEntries from "../runs/runEntries.ts"

/** A dead letter, and when it was dead-lettered. */
interface Dated extends Position {
  readonly deadLetteredMillis: number
}

const decoder = new TextDecoder()
const kept = /^(plan|batch|discarded|restored)\//
const letterOfCopy = /"letter":"(\d{1,10}@\d{1,19})"/g

/** Collects the entries of the journal while somebody reads it, and decodes those that the letters of a page need. */
export class LetterHistory {
  readonly #runs: Array<ConsumerRecord> = []
  readonly #audits: Array<ConsumerRecord> = []

  /** A record of the journal, in the order of its log. */
  readonly add = (record: ConsumerRecord): void => {
    const [, kind] = kept.exec(record.key === null ? "" : decoder.decode(record.key)) ?? []
    if (kind === undefined || record.transactional === false) return
    if (kind === "plan" || kind === "batch") this.#runs.push(record)
    else this.#audits.push(record)
  }

  /** Each letter with its events, the oldest first. */
  of<A extends Dated>(
    groups: CopyOwner.Groups,
    letters: ReadonlyArray<A>
  ): ReadonlyArray<A & { readonly history: ReadonlyArray<LetterEvent> }> {
    const events = new Map<string, Array<LetterEvent>>(letters.map((letter) => [Positions.textOf(letter), []]))
    this.#addCopies(groups, events)
    this.#addDecisions(groups, events)
    return letters.map((letter) => {
      const found = events.get(Positions.textOf(letter)) ?? []
      // An older event is about a record of a topic that was deleted.
      const own = found.filter(({ atMillis }) => atMillis >= letter.deadLetteredMillis)
      return { ...letter, history: own.sort((one, other) => one.atMillis - other.atMillis) }
    })
  }

  #addCopies({ groupId, adopts }: CopyOwner.Groups, events: ReadonlyMap<string, Array<LetterEvent>>): void {
    const all = new Map<string, RunEntries.Told>()
    for (const record of this.#runs) {
      const text = record.value === null ? "" : decoder.decode(record.value)
      const isNeeded =
        !text.includes('"copies"') || Array.from(text.matchAll(letterOfCopy)).some(([, at]) => events.has(at!))
      if (isNeeded) for (const group of [groupId, ...adopts]) RunEntries.apply(all, group, record)
    }
    for (const { id: runId, plan, batches } of all.values())
      for (const { entry, millis: atMillis } of batches.values())
        for (const { letter, copy } of entry.copies) {
          const { by, reason } = plan?.entry ?? {}
          events.get(letter)?.push({ action: "replayed", atMillis, runId, by, reason, copy: Positions.readCopy(copy) })
        }
  }

  #addDecisions(groups: CopyOwner.Groups, events: ReadonlyMap<string, Array<LetterEvent>>): void {
    const at = ({ partition, offset }: { readonly partition: number; readonly offset: string }) =>
      events.get(`${partition}@${offset}`)
    for (const given of Audits.discardedIn(this.#audits, groups)) {
      const { discardedAt, runId, by, reason } = given
      at(given)?.push({ action: "discarded", atMillis: discardedAt, runId, by, reason, copy: undefined })
    }
    for (const given of Audits.restoredIn(this.#audits, groups)) {
      const { discardedAt, discardedBy, discardedBecause, discardedRunId, restoredAt, runId, by, reason } = given
      at(given)?.push(
        {
          ...{ action: "discarded", atMillis: discardedAt, runId: discardedRunId, by: discardedBy },
          ...{ reason: discardedBecause, copy: undefined }
        },
        { action: "restored", atMillis: restoredAt, runId, by, reason, copy: undefined }
      )
    }
  }
}
