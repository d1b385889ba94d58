/**
 * The records whose failures are in a window, by the window's slots. It is a hash table with chained slots in plain arrays: each failure enters it, and the engine's
 * own maps cost several times as much.
 */
import type { RecordPosition } from "../../ConsumerRecord.ts"

const none = -1

export class FailedRecords {
  readonly #records: Array<RecordPosition | undefined>
  /** The first slot of each chain. There are at least as many chains as slots, and their number is a power of two. */
  readonly #first: Int32Array
  /** The slot behind each slot in its chain. */
  readonly #next: Int32Array
  #size = 0

  constructor(slots: number) {
    this.#records = new Array(slots)
    this.#first = new Int32Array(2 ** Math.ceil(Math.log2(slots))).fill(none)
    this.#next = new Int32Array(slots).fill(none)
  }

  get size(): number {
    return this.#size
  }

  /** The slot of the record's failure; -1 when there is none. */
  slotOf(record: RecordPosition): number {
    let slot = this.#first[this.#chainOf(record)]!
    while (slot !== none && !isSame(this.#records[slot]!, record)) slot = this.#next[slot]!
    return slot
  }

  /** The slot is free, and the record has no other one. */
  put(slot: number, { topic, partition, offset }: RecordPosition): void {
    // A copy: the position may be a whole record, which would stay in memory with it.
    const record = { topic, partition, offset }
    const chain = this.#chainOf(record)
    this.#records[slot] = record
    this.#next[slot] = this.#first[chain]!
    this.#first[chain] = slot
    this.#size++
  }

  /** Changes nothing for a slot without a record. */
  remove(slot: number): void {
    const record = this.#size === 0 ? undefined : this.#records[slot]
    if (record === undefined) return
    this.#records[slot] = undefined
    this.#size--
    const chain = this.#chainOf(record)
    const behind = this.#next[slot]!
    if (this.#first[chain] === slot) {
      this.#first[chain] = behind
      return
    }
    let before = this.#first[chain]!
    while (this.#next[before] !== slot) before = this.#next[before]!
    this.#next[before] = behind
  }

  clear(): void {
    this.#records.fill(undefined)
    this.#first.fill(none)
    this.#size = 0
  }

  #chainOf({ partition, offset }: RecordPosition): number {
    // A large odd factor spreads the partitions, which often have the same offsets.
    return (Number(BigInt.asUintN(30, offset)) + Math.imul(partition, 0x9e3779b1)) & (this.#first.length - 1)
  }
}

const isSame = (one: RecordPosition, other: RecordPosition): boolean =>
  one.offset === other.offset && one.partition === other.partition && one.topic === other.topic
