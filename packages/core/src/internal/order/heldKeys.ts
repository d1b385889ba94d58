/**
 * The decisions about keys whose record waits for an operator (`perKey.onDeadLetter: "hold"`).
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type * as OrderHeaders from "../record/orderHeaders.ts"
import * as Detached from "./detached.ts"
import type { Entry } from "./entry.ts"
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
  hold(entry: Entry, record: ConsumerRecord): void {
    if (entry.doneTo > entry.offset || entry.isDraining) return
    entry.held = Detached.of(record)
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

  /** The held record is the first of those that follow. */
  #reopen(entry: Entry): void {
    if (entry.held === undefined) return
    const { table, options } = this.#unit
    table.addFirst(entry, LockCopies.headOf(options, entry.offset, entry.held))
    this.#unit.drain(entry)
  }
}
