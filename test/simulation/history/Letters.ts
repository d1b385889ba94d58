/**
 * The dead letters of a service, and the replays of them: how many there are of each record and each number of replays before.
 */
import type { Copy } from "./copies.ts"
import * as Copies from "./copies.ts"

export class Letters {
  private readonly stored = new Map<string, number>()
  /** Letters that operators gave up, or may have: `partition@offset`. */
  private readonly discarded = new Set<string>()
  private readonly replayed = new Map<string, number>()
  private readonly reported = new Map<string, number>()
  private readonly replayedByBinding = new Map<string, number>()

  /** The letters of a record that had been replayed so often. */
  count(id: string, replays: number): number {
    return this.stored.get(keyOf(id, replays)) ?? 0
  }

  /** The copies that replays made of those letters. */
  replaysOf(id: string, replays: number): number {
    return this.replayed.get(keyOf(id, replays)) ?? 0
  }

  /** The copies of a binding that its replays reported, and those that there are. */
  sums(binding: string): { readonly reported: number; readonly replayed: number } {
    return { reported: this.reported.get(binding) ?? 0, replayed: this.replayedByBinding.get(binding) ?? 0 }
  }

  discard(letters: ReadonlyArray<string>): void {
    for (const place of letters) this.discarded.add(place)
  }

  isDiscarded(place: string): boolean {
    return this.discarded.has(place)
  }

  store(copy: Copy): void {
    increase(this.stored, keyOf(copy.id, Copies.replaysOf(copy)), 1)
  }

  replay(binding: string, copy: Copy): void {
    increase(this.replayed, keyOf(copy.id, Copies.replaysOf(copy) - 1), 1)
    increase(this.replayedByBinding, binding, 1)
  }

  report(binding: string, replayed: number): void {
    increase(this.reported, binding, replayed)
  }
}

const keyOf = (id: string, replays: number): string => `${id} ${replays}`

const increase = (counts: Map<string, number>, key: string, by: number): void => {
  counts.set(key, (counts.get(key) ?? 0) + by)
}
