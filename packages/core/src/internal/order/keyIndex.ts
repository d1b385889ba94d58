/**
 * Parked keys by their bytes. While keys are parked, every record of the source is looked for here: its key is hashed where it lies, since text of it would cost ten times as much
 * as the answer.
 */
import type { Entry } from "./entry.ts"

export class KeyIndex {
  readonly #entries = new Set<Entry>()
  /** Keys with one hash stand side by side. */
  readonly #byHash = new Map<number, Array<Entry>>()

  get size(): number {
    return this.#entries.size
  }

  values(): IterableIterator<Entry> {
    return this.#entries.values()
  }

  get(key: Uint8Array): Entry | undefined {
    const entries = this.#byHash.get(hashOf(key))
    if (entries === undefined) return undefined
    for (const entry of entries) if (isEqual(entry.keyBytes, key)) return entry
    return undefined
  }

  /** It takes the place of an entry with the same key. */
  add(entry: Entry): void {
    const before = this.get(entry.keyBytes)
    if (before !== undefined) this.delete(before)
    this.#entries.add(entry)
    const hash = hashOf(entry.keyBytes)
    const entries = this.#byHash.get(hash)
    if (entries === undefined) this.#byHash.set(hash, [entry])
    else entries.push(entry)
  }

  /** Does nothing where another entry has taken its place. */
  delete(entry: Entry): void {
    if (!this.#entries.delete(entry)) return
    const hash = hashOf(entry.keyBytes)
    const others = this.#byHash.get(hash)!.filter((other) => other !== entry)
    if (others.length === 0) this.#byHash.delete(hash)
    else this.#byHash.set(hash, others)
  }
}

/** Differs in each process: nobody can choose keys that share a hash. */
const seed = Math.floor(Math.random() * 0x1_0000_0000)

/** FNV-1a, a number of 32 bits. */
const hashOf = (key: Uint8Array): number => {
  let hash = seed | 0
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key[i]!, 0x0100_0193)
  return hash
}

const isEqual = (one: Uint8Array, other: Uint8Array): boolean => {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false
  return true
}
