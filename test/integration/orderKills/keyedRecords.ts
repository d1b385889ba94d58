/** The records of the kill test of order per key. The number of a record says which key it has, how long its handler takes, and how often that fails: in each process the same. */
import type { ConsumerRecord } from "@eventbus/core"
import * as Bus from "../bus.ts"

export const partitions = 6
const hotKeys = 4
const quietKeys = 101

/** How often the handler of a record fails: `number` times, in every tier (so that its retries end in the dead letter topic), or so that it is dead-lettered at once. */
export type Fate = number | "always" | "at-once"

/** Numbers in a row have nothing in common, nor have multiples of one number. */
const mixed = (n: number): number => {
  const once = Math.imul(n ^ (n >>> 16) ^ 0x5bd1e995, 0x85ebca6b)
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35)
  return (twice ^ (twice >>> 16)) >>> 0
}

/** 7 of 100 records are tried again, one ends as a dead letter after all tiers, and one at once. */
export const fateOf = (n: number): Fate => {
  const share = mixed(n) % 100
  if (share < 5) return 1
  if (share < 7) return 2
  if (share === 7) return "always"
  return share === 8 ? "at-once" : 0
}

export const isLetter = (n: number): boolean => typeof fateOf(n) === "string"

/** From 0 to 29. */
export const handlerMillisOf = (n: number): number => mixed(n + 1) % 30

/** One record in eight has one of a few keys, which have followers whenever they are parked. */
const keyNumberOf = (n: number): number => (n % 8 === 0 ? (n / 8) % hotKeys : hotKeys + (n % quietKeys))

export const record = (topic: string, n: number): ConsumerRecord.ProducerRecord => ({
  topic,
  partition: keyNumberOf(n) % partitions,
  key: Bus.bytes(`key-${keyNumberOf(n)}`),
  value: Bus.bytes(String(n))
})
