/**
 * The records whose failures are in a window, by the window's slots. It is a hash table with chained slots in plain arrays: each failure enters it, and with a map of
 * objects the collector would copy all of them again and again.
 */
import type { RecordPosition } from "../../ConsumerRecord.ts"

const none = -1

export class FailedRecords {
  /** The record of each slot; a slot without a topic has none. */
  readonly #topics: Array<string | undefined>
  readonly #partitions: Int32Array
  readonly #offsets: BigInt64Array
  /** The first slot of each chain. There are at least as many chains as slots, and their number is a power of two. */
  readonly #first: Int32Array
  /** The slot behind each slot in its chain. */
  readonly #next: Int32Array
  #size = 0

  constructor(slots: number) {
    this.#topics = new Array(slots)
    this.#partitions = new Int32Array(slots)
    this.#offsets = new BigInt64Array(slots)
    this.#first = new Int32Array(2 ** Math.ceil(Math.log2(slots))).fill(none)
    this.#next = new Int32Array(slots)
  }

  get size(): number {
    return this.#size
  }

  /** The slot of the record's failure; -1 when there is none. */
  slotOf(record: RecordPosition): number {
    let slot = this.#first[this.#chainOf(record.partition, record.offset)]!
    while (slot !== none && !this.#has(slot, record)) slot = this.#next[slot]!
    return slot
  }

  /** The slot is free, and the record has no other one. */
  put(slot: number, { topic, partition, offset }: RecordPosition): void {
    const chain = this.#chainOf(partition, offset)
    this.#topics[slot] = topic
    this.#partitions[slot] = partition
    this.#offsets[slot] = offset
    this.#next[slot] = this.#first[chain]!
    this.#first[chain] = slot
    this.#size++
  }

  /** Changes nothing for a slot without a record. */
  remove(slot: number): void {
    if (this.#topics[slot] === undefined) return
    this.#topics[slot] = undefined
    this.#size--
    const chain = this.#chainOf(this.#partitions[slot]!, this.#offsets[slot]!)
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
    this.#topics.fill(undefined)
    this.#first.fill(none)
    this.#size = 0
  }

  #has(slot: number, { topic, partition, offset }: RecordPosition): boolean {
    return this.#offsets[slot] === offset && this.#partitions[slot] === partition && this.#topics[slot] === topic
  }

  #chainOf(partition: number, offset: bigint): number {
    // A large odd factor spreads the partitions, which often have the same offsets.
    return (Number(offset) + Math.imul(partition, 0x9e3779b1)) & (this.#first.length - 1)
  }
}
