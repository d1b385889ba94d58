/**
 * The followers of one key that are in memory, in the order of their offsets.
 */
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Detached from "./detached.ts"

/** Taken ones are dropped from the array when there are this many. */
const mostTaken = 1_024

export class Followers {
  #records: Array<ConsumerRecord | undefined> = []
  #taken = 0
  bytes = 0

  get length(): number {
    return this.#records.length - this.#taken
  }

  get first(): ConsumerRecord | undefined {
    return this.#records[this.#taken]
  }

  /** `bytes`: those of the record, by `bytesOf`. */
  add(record: ConsumerRecord, bytes: number): void {
    this.#records.push(Detached.of(record))
    this.bytes += bytes
  }

  /** Puts one in front of all others. */
  addFirst(record: ConsumerRecord, bytes: number): void {
    this.#records = [Detached.of(record), ...this.#records.slice(this.#taken)]
    this.#taken = 0
    this.bytes += bytes
  }

  /** Drops the first one, and answers its bytes. */
  drop(): number {
    const record = this.first
    if (record === undefined) return 0
    this.#records[this.#taken++] = undefined
    if (this.#taken >= mostTaken || this.#taken === this.#records.length) {
      this.#records = this.#records.slice(this.#taken)
      this.#taken = 0
    }
    const bytes = bytesOf(record)
    this.bytes -= bytes
    return bytes
  }
}

/** The cost of an object beside its bytes. */
const objectBytes = 64

export const bytesOf = ({ key, value, headers }: ConsumerRecord): number => {
  let bytes = objectBytes + (key?.length ?? 0) + (value?.length ?? 0)
  for (const header of headers) bytes += objectBytes + header.key.length + (header.value?.length ?? 0)
  return bytes
}
