/**
 * A copy in a retry or dead letter topic, read by its headers.
 */
import type { ConsumerRecord } from "@eventbus/core"
import { beginMillis } from "../scenario/Scenario.ts"

export interface Copy {
  readonly topic: string
  /** Id of the source record. An undecodable value has a mark in front of its id. */
  readonly id: string
  readonly key: string | null
  /** The connector's headers, by name without `x-eventbus-`. */
  readonly headers: ReadonlyMap<string, string>
  /** Headers of the connector that occur more than once. */
  readonly repeated: ReadonlyArray<string>
  /** All other headers, in order. */
  readonly userHeaders: ReadonlyArray<string>
}

const prefix = "x-eventbus-"
const originHeader = `${prefix}original-topic`
const decoder = new TextDecoder()

type Record = Pick<ConsumerRecord.ProducerRecord, "topic" | "key" | "value" | "headers">

/** Undefined for a record that is not a copy: it has no header about its origin. */
export const read = (record: Record): Copy | undefined => {
  const { topic, key, value } = record
  // Most records are no copies, and nothing of them is decoded.
  if (record.headers?.some((header) => header.key === originHeader) !== true) return undefined
  const headers = new Map<string, string>()
  const repeated: Array<string> = []
  const userHeaders: Array<string> = []
  for (const header of record.headers) {
    const text = decoder.decode(header.value ?? undefined)
    if (!header.key.startsWith(prefix)) {
      userHeaders.push(`${header.key}=${text}`)
      continue
    }
    const name = header.key.slice(prefix.length)
    if (headers.has(name)) repeated.push(name)
    headers.set(name, text)
  }
  const id = decoder.decode(value ?? undefined).replace(/^!/, "")
  return { topic, id, key: key == null ? null : decoder.decode(key), headers, repeated, userHeaders }
}

export const numberOf = ({ headers }: Copy, name: string): number => Number(headers.get(name) ?? Number.NaN)

/** Time of the copy according to its headers, in milliseconds since the scenario began. */
export const publishedMillis = (copy: Copy): number =>
  numberOf(copy, copy.headers.has("retry-timestamp") ? "retry-timestamp" : "dlt-timestamp") - beginMillis

/** How often the record had been replayed when the copy was made. */
export const replaysOf = ({ headers }: Copy): number => Number(headers.get("replay-count") ?? 0)

/** Whether a replay published the record of a main topic: its bond is that of the record itself (ruling 70). */
export const isBound = (
  { headers }: Copy,
  { topic, partition, timestamp }: ConsumerRecord.ConsumerRecord,
  clusterId: string
): boolean => headers.get("replay-bond") === `${clusterId}/${topic}/${partition}/${timestamp}`

/** The group that the mark of a copy names; undefined without a mark, or with one for another topic. */
export const ownerOf = ({ topic, headers }: Copy): string | undefined => {
  const mark = headers.get("copy-owner")
  return mark?.startsWith(`${topic}/`) ? mark.slice(topic.length + 1) : undefined
}

/** Partition and offset of the original record. */
export const originOf = ({ headers }: Copy): string =>
  `${headers.get("original-topic")}/${headers.get("original-partition")} at ${headers.get("original-offset")}`
