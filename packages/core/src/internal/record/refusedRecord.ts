/**
 * A look at the records that a program gives a producer, where types do not hold. Without a look at it, text would be written as zero bytes, and a time that is no whole number would fail the
 * whole request, with the records of others in it.
 */
import { RecordRejected } from "../../BrokerError.ts"
import * as Choices from "../../Choices.ts"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import { isBytes } from "../base/bytes.ts"

/** The error of a record that no broker can take; undefined when one can. It shows no key and no value. Runs for each record that is published. */
export const refusedRecord = (record: ProducerRecord): RecordRejected | undefined => {
  const detail = problemOf(record)
  if (detail === undefined) return undefined
  const topic = typeof record?.topic === "string" ? record.topic : ""
  return new RecordRejected({ topic, detail })
}

const problemOf = (record: ProducerRecord): string | undefined => {
  if (typeof record !== "object" || record === null) return `it is ${kindOf(record)}, and no record`
  const { topic, key, value, headers, partition, timestamp, compression } = record
  if (typeof topic !== "string" || topic === "") return expected("topic", topic, "a name")
  if (!isBytesOrNull(key)) return expected("key", key, bytes)
  if (!isBytesOrNull(value)) return expected("value", value, bytes)
  if (partition !== undefined && !(Number.isInteger(partition) && partition >= 0))
    return expected("partition", partition, "a whole number of 0 or more")
  if (timestamp !== undefined && !isTime(timestamp, record.replaceTimestamp === true))
    return expected("timestamp", timestamp, "a whole number of milliseconds, 0 or more")
  if (compression !== undefined && !Choices.compression.includes(compression))
    return expected("compression", compression, Choices.inWords(Choices.compression))
  return headers === undefined ? undefined : problemOfHeaders(headers)
}

const bytes = "a Uint8Array or null"

/** A negative time that may be replaced is left to the broker: it refuses it, and another time is tried (ruling 76). */
const isTime = (timestamp: number, mayBeReplaced: boolean): boolean =>
  Number.isSafeInteger(timestamp) && (timestamp >= 0 || mayBeReplaced)

const problemOfHeaders = (headers: NonNullable<ProducerRecord["headers"]>): string | undefined => {
  if (!Array.isArray(headers)) return expected("headers", headers, "a list")
  for (const header of headers) {
    if (typeof header !== "object" || header === null) return `one of its headers is ${kindOf(header)}`
    if (typeof header.key !== "string") return `the name of one of its headers is ${kindOf(header.key)}`
    if (!isBytesOrNull(header.value)) return expected(`header '${header.key}'`, header.value, bytes)
  }
  return undefined
}

const isBytesOrNull = (value: unknown): boolean => value === null || isBytes(value)

const expected = (what: string, found: unknown, allowed: string): string =>
  `its ${what} is ${kindOf(found)}, and ${allowed} is expected`

/** Numbers say what is wrong with them; texts and objects may be content. */
const kindOf = (found: unknown): string =>
  typeof found === "number" ? String(found) : found === null ? "null" : `a value of type ${typeof found}`
