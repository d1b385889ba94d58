/**
 * The history of single dead letters, as the journal of replays tells it: which runs have copied them, and who gave them up or brought them back.
 *
 * A journal tells of every letter that was ever dealt with, and a page shows few: the first reading notes where the letters are mentioned, and what is about the letters of the
 * page is read once more.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { LetterEvent } from "../../DeadLetterList.ts"
import type { Position } from "../../DeadLetterSelection.ts"
import type * as CopyOwner from "../record/copyOwner.ts"
import * as Audits from "../replay/replayAudits.ts"
import type { TopicScan } from "../replay/topicScan.ts"
import * as Positions from "../runs/positions.ts"
import * as RunEntries from "../runs/runEntries.ts"
import { JournalBlocks } from "./journalBlocks.ts"

/** A dead letter, and when it was dead-lettered. */
interface Dated extends Position {
  readonly deadLetteredMillis: number
}

/** The reasons of a run, as its plan has them. */
type Why = Pick<RunEntries.PlanEntry, "by" | "reason">

type Events = ReadonlyMap<string, Array<LetterEvent>>

const decoder = new TextDecoder()
const kept = /^(?:(plan|batch)\/|(?:discarded|restored)\/(\d{1,10})\/(\d{1,19})\/)/
const letterOfCopy = /"letter":"(\d{1,10}@\d{1,19})"/g

/** The letters that a record of the journal has copied, given up or brought back; undefined for one of another kind. */
const lettersOf = ({ key, value, transactional }: ConsumerRecord): ReadonlyArray<string> | undefined => {
  const [, kind, partition, offset] = kept.exec(key === null ? "" : decoder.decode(key)) ?? []
  if (transactional === false) return undefined
  if (partition !== undefined) return [`${partition}@${offset}`]
  if (kind !== "batch") return undefined
  return Array.from((value === null ? "" : decoder.decode(value)).matchAll(letterOfCopy), ([, letter]) => letter!)
}

const isPlan = ({ key }: ConsumerRecord): boolean => key !== null && decoder.decode(key).startsWith("plan/")

export class LetterHistory {
  readonly #groups: CopyOwner.Groups
  readonly #blocks = new JournalBlocks()
  /** By the id of the run. */
  readonly #whys = new Map<string, Why>()

  constructor(groups: CopyOwner.Groups) {
    this.#groups = groups
  }

  /** A record of the journal, in the order of its log. Keeps nothing of it but where it lies, and why a run was made. */
  readonly add = (record: ConsumerRecord): void => {
    const letters = lettersOf(record)
    if (letters !== undefined) this.#blocks.add(record, Positions.read(letters))
    else if (isPlan(record)) this.#addWhy(record)
  }

  #addWhy(record: ConsumerRecord): void {
    for (const { id, plan } of this.#runsIn([record])) {
      if (plan === undefined) continue
      const { by, reason } = plan.entry
      this.#whys.set(id, { by, reason })
    }
  }

  #runsIn(records: ReadonlyArray<ConsumerRecord>): Iterable<RunEntries.Told> {
    const all = new Map<string, RunEntries.Told>()
    const { groupId, adopts } = this.#groups
    for (const record of records) for (const group of [groupId, ...adopts]) RunEntries.apply(all, group, record)
    return all.values()
  }

  /** Each letter with its events, the oldest first. `scan` reads the journal. */
  of<A extends Dated>(
    scan: TopicScan,
    letters: ReadonlyArray<A>
  ): Effect.Effect<ReadonlyArray<A & { readonly history: ReadonlyArray<LetterEvent> }>, BrokerError> {
    const events: Events = new Map(letters.map((letter) => [Positions.textOf(letter), []]))
    return Effect.map(this.#recordsAbout(scan, letters, events), (records) => {
      this.#addCopies(records, events)
      this.#addDecisions(records, events)
      return letters.map((letter) => {
        const found = events.get(Positions.textOf(letter)) ?? []
        // An older event is about a record of a topic that was deleted.
        const own = found.filter(({ atMillis }) => atMillis >= letter.deadLetteredMillis)
        return { ...letter, history: own.sort((one, other) => one.atMillis - other.atMillis) }
      })
    })
  }

  /** The records of the journal that are about any of the letters. */
  #recordsAbout(scan: TopicScan, letters: ReadonlyArray<Position>, events: Events) {
    const isAbout = (record: ConsumerRecord) => lettersOf(record)?.some((letter) => events.has(letter)) === true
    const found = Effect.forEach(this.#blocks.rangesOf(letters), (range) =>
      Stream.runCollect(Stream.filter(scan.read(range, "await"), isAbout))
    )
    return Effect.map(found, (ranges) => ranges.flat())
  }

  #addCopies(records: ReadonlyArray<ConsumerRecord>, events: Events): void {
    for (const { id: runId, batches } of this.#runsIn(records))
      for (const { entry, millis: atMillis } of batches.values())
        for (const { letter, copy } of entry.copies) {
          const { by, reason } = this.#whys.get(runId) ?? {}
          events.get(letter)?.push({ action: "replayed", atMillis, runId, by, reason, copy: Positions.readCopy(copy) })
        }
  }

  #addDecisions(records: ReadonlyArray<ConsumerRecord>, events: Events): void {
    const at = ({ partition, offset }: { readonly partition: number; readonly offset: string }) =>
      events.get(`${partition}@${offset}`)
    for (const given of Audits.discardedIn(records, this.#groups)) {
      const { discardedAt, runId, by, reason } = given
      at(given)?.push({ action: "discarded", atMillis: discardedAt, runId, by, reason, copy: undefined })
    }
    for (const given of Audits.restoredIn(records, this.#groups)) {
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
