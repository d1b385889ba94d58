/**
 * The keys whose record waits for an operator (`perKey.onDeadLetter: "hold"`), and the decisions about them.
 */
import * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Names from "../record/headerNames.ts"
import * as HeaderValues from "../record/headerValues.ts"
import type * as OrderHeaders from "../record/orderHeaders.ts"
import type { Entry } from "./entry.ts"
import * as HeldReading from "./heldReading.ts"
import type { KeyTable } from "./keyTable.ts"
import * as LockCopies from "./lockCopies.ts"
import type { UnitOptions } from "./unitOptions.ts"

/** The unit, as this part of it calls it. */
interface OfUnit {
  readonly options: UnitOptions
  readonly table: KeyTable
  readonly stopping: boolean
  readonly drain: (entry: Entry) => void
}

export class HeldKeys {
  readonly #unit: OfUnit

  constructor(unit: OfUnit) {
    this.#unit = unit
  }

  /** The record is stored, or read again. Nothing is left to decide where the key has gone on meanwhile. */
  hold(entry: Entry, { offset, headers }: ConsumerRecord): void {
    if (entry.doneTo > entry.offset || entry.isDraining) return
    // From its failure on, whoever held it first.
    const sinceMillis = HeaderValues.timestamp(HeaderValues.last(headers, Names.dltTimestamp))
    const nowMillis = this.#unit.options.clock.currentTimeMillisUnsafe()
    entry.held = { offset, sinceMillis: sinceMillis ?? nowMillis, record: undefined }
    this.#decide(entry)
  }

  /** Takes a decision about the record that a key is held by. While its lock is on its way, the decision waits for it. False when the key is not held at this offset. */
  command(entry: Entry, { kind, offset }: OrderHeaders.Command): boolean {
    if (!entry.isHeld || entry.offset !== offset || this.#unit.stopping) return false
    entry.decision = kind
    this.#decide(entry)
    return true
  }

  #decide(entry: Entry): void {
    const { decision } = entry
    if (decision === undefined || entry.held === undefined) return
    entry.decision = undefined
    if (decision === "skip-held") this.giveUp(entry, entry.offset)
    else this.#reopen(entry)
  }

  /** The held record becomes a dead letter, and so does what follows below an offset. The main topic may not have come to the held record again. */
  giveUp(entry: Entry, to: bigint): void {
    const behind = entry.offset + 1n
    entry.blockedTo = to > behind ? to : behind
    this.#reopen(entry)
  }

  /** The held record is the first of those that follow. It is read when it is the key's turn to drain: no more bodies are in memory than keys that drain. */
  #reopen(entry: Entry): void {
    if (entry.held === undefined) return
    entry.awaitsHead = true
    this.#unit.drain(entry)
  }

  /** Puts the held record in front of what follows it. Where nobody has it any more, the key goes on behind it. */
  readHead(entry: Entry): Effect.Effect<void> {
    const { options, table } = this.#unit
    return HeldReading.each(options, [entry], (_, record) =>
      Effect.sync(() => {
        if (!entry.awaitsHead) return
        entry.awaitsHead = false
        if (record === undefined) return this.lost(entry)
        entry.held!.record = record
        table.addFirst(entry, LockCopies.headOf(options, entry.offset, record))
      })
    )
  }

  /** Nobody has the held record any more: the key goes on behind it. */
  lost(entry: Entry): void {
    entry.held = undefined
    entry.awaitsHead = false
    entry.doneTo = entry.offset + 1n
    this.#unit.options.onHeldGone(entry)
  }
}
