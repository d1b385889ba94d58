/**
 * The parts of one unit that are here, until the unit runs.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Unit } from "../order/unit.ts"
import type { Partition } from "../partition/partition.ts"

export class UnitParts {
  readonly key: string
  readonly source: string
  readonly partition: number
  /** By topic. */
  readonly parts = new Map<string, Partition>()
  hasBegun = false
  unit: Unit | undefined = undefined
  readonly #ready = Deferred.makeUnsafe<void>()

  constructor(key: string, source: string, partition: number) {
    this.key = key
    this.source = source
    this.partition = partition
  }

  /** Returns when the unit runs, or when it is found that none is needed. */
  get ready(): Effect.Effect<void> {
    return Deferred.await(this.#ready)
  }

  isReady(): void {
    Deferred.doneUnsafe(this.#ready, Effect.void)
  }

  /** Whether a unit has committed in one of the parts. */
  get hadUnit(): boolean {
    return Array.from(this.parts.values()).some((part) => {
      const { epoch, parked } = part.commitText.ofOrder(part.position(), undefined)
      return epoch !== undefined || parked !== undefined
    })
  }

  /** The parts wait for the others, or for the beginning of their unit. */
  waitsFor(missing: ReadonlyArray<string>, sinceMillis: number): void {
    const problem =
      missing.length === 0 ? "it begins" : `partition ${this.partition} of ${missing.join(", ")} is not assigned here`
    for (const part of this.parts.values()) part.awaitsUnit = { problem, sinceMillis }
  }

  /** Answers whether the problem is a new one. */
  failed(problem: string): boolean {
    const isNew = Array.from(this.parts.values()).some(({ awaitsUnit }) => awaitsUnit && awaitsUnit.problem !== problem)
    for (const part of this.parts.values()) {
      if (part.awaitsUnit !== undefined) part.awaitsUnit = { ...part.awaitsUnit, problem }
    }
    return isNew
  }

  /** The parts may run: as a unit, or each by itself where no unit is needed. */
  release(unit: Unit | undefined): void {
    this.unit = unit
    for (const partition of this.parts.values()) {
      const part = unit === undefined ? -1 : [unit.options.main, ...unit.options.tiers].indexOf(partition)
      if (unit === undefined) partition.commitText.forgetOrder()
      else partition.order = unit.parts[part]
      partition.awaitsUnit = undefined
      partition.removeReason("order")
    }
  }
}
