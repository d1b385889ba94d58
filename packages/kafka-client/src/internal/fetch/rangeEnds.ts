/**
 * Fetched ranges that did not fit into one chunk, because they were compressed. A partition has at most one, which is handed over chunk by chunk before it
 * is fetched again.
 */
import type { OwnedPartition } from "../group/ownership.ts"
import type { FetchedRange } from "./fetchedRange.ts"

interface Kept {
  readonly range: FetchedRange
  readonly seeks: number
}

export class RangeEnds {
  readonly #kept = new Map<OwnedPartition, Kept>()

  /** Keeps what is left of a range, until `take`. */
  keep(owned: OwnedPartition, range: FetchedRange): void {
    this.#kept.set(owned, { range, seeks: owned.seeks })
  }

  has(owned: OwnedPartition): boolean {
    return this.#kept.has(owned)
  }

  take(owned: OwnedPartition): FetchedRange | undefined {
    const kept = this.#kept.get(owned)
    this.#kept.delete(owned)
    return kept?.range
  }

  /** Frees the ranges of partitions that were given up or moved. */
  dropStale(isHeld: (owned: OwnedPartition) => boolean): void {
    for (const [owned, { range, seeks }] of this.#kept) {
      if (isHeld(owned) && owned.seeks === seeks) continue
      this.#kept.delete(owned)
      range.close()
    }
  }
}
