/**
 * A part of a unit, as its partition knows it: 0 is the main topic, then the retry topics in the order of the tiers.
 */
import type * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { ParkedKeys } from "../partition/commitMetadata.ts"
import type { OrderedPart } from "../partition/orderedPart.ts"
import type { ResultWithCopy } from "../record/deliveryResult.ts"
import type { Claims } from "./claims.ts"
import type { KeyTable } from "./keyTable.ts"

/** The unit, as its parts call it. */
export interface WholeUnit {
  readonly table: KeyTable
  readonly claims: ReadonlyArray<Claims>
  readonly onBeside: (effect: Effect.Effect<unknown>) => void
  readonly takeMain: (record: ConsumerRecord, sequence: number) => boolean
  readonly takeTier: (part: number, record: ConsumerRecord, sequence: number) => boolean
  readonly park: (part: number, record: ConsumerRecord, sequence: number, result: ResultWithCopy) => ResultWithCopy
  readonly finish: (part: number, sequence: number) => void
  readonly relock: (part: number, from: bigint) => ReadonlyArray<Effect.Effect<unknown>>
}

export class MainPart implements OrderedPart {
  readonly room: Effect.Effect<void>
  readonly #unit: WholeUnit

  constructor(unit: WholeUnit) {
    this.#unit = unit
    this.room = unit.table.room
  }

  get isQuiet(): boolean {
    return this.#unit.table.size === 0
  }

  get followers(): number {
    return this.#unit.table.followers
  }

  get freedTo(): bigint {
    return this.#unit.table.freedTo
  }

  get hasRoom(): boolean {
    return this.#unit.table.hasRoom
  }

  take(record: ConsumerRecord, sequence: number): boolean {
    return this.#unit.takeMain(record, sequence)
  }

  park(record: ConsumerRecord, sequence: number, result: ResultWithCopy): ResultWithCopy {
    return this.#unit.park(0, record, sequence, result)
  }

  finish(sequence: number): void {
    this.#unit.finish(0, sequence)
  }

  lost(): void {}

  epochAt(): undefined {
    return undefined
  }

  parked(): ParkedKeys | undefined {
    return this.#unit.table.parked
  }
}

export class RetryPart implements OrderedPart {
  readonly isQuiet = false
  readonly followers = 0
  readonly freedTo = 0n
  readonly hasRoom = true
  readonly room: Effect.Effect<void>
  readonly #unit: WholeUnit
  readonly #part: number

  constructor(unit: WholeUnit, part: number) {
    this.#unit = unit
    this.#part = part
    this.room = unit.table.room
  }

  take(record: ConsumerRecord, sequence: number): boolean {
    return this.#unit.takeTier(this.#part, record, sequence)
  }

  park(record: ConsumerRecord, sequence: number, result: ResultWithCopy): ResultWithCopy {
    return this.#unit.park(this.#part, record, sequence, result)
  }

  finish(sequence: number): void {
    this.#unit.finish(this.#part, sequence)
  }

  lost(below: bigint): void {
    for (const relocked of this.#unit.relock(this.#part, below)) this.#unit.onBeside(relocked)
  }

  epochAt(offset: bigint): number | undefined {
    return this.#unit.claims[this.#part - 1]!.at(offset)
  }

  parked(): undefined {
    return undefined
  }
}
