/**
 * A look at the records that a program gives a producer, where types do not hold. Without a look at it, text would be written as zero bytes, and a time that is no whole number would fail the
 * whole request, with the records of others in it.
 */
import { InvalidTopic, RecordRejected } from "../../BrokerError.ts"
import * as Choices from "../../Choices.ts"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import * as TopicName from "../../TopicName.ts"
import { isBytesOrNull } from "../base/bytes.ts"

/**
 * The error of a record that no broker can take; undefined when one can. It shows no key and no value. Never throws, whatever it is given. Runs for each record that is
 * published.
 */
export const refusedRecord = (record: ProducerRecord): RecordRejected | InvalidTopic | undefined => {
  try {
    const detail = problemOf(record)
    if (detail !== undefined) return rejected(record, detail)
    return record.topic.length > TopicName.maxLength ? tooLong(record.topic) : undefined
  } catch {
    return unreadableRecord()
  }
}

/** The error of a record that throws when it is read, as one with getters or a Proxy may: at once, or when it is read again to be written. */
export const unreadableRecord = (): RecordRejected =>
  new RecordRejected({ topic: "", detail: "one of its properties throws when it is read" })

const rejected = (record: ProducerRecord, detail: string): RecordRejected =>
  new RecordRejected({ topic: typeof record?.topic === "string" ? shortened(record.topic) : "", detail })

/** Kafka refuses it in the end. Until then it would stand in a request with the topics of others, and fail that as a whole where it is longer than a request can carry. */
const tooLong = (topic: string): InvalidTopic =>
  new InvalidTopic({ topic: shortened(topic), detail: `it has ${topic.length} characters` })

const shortened = (topic: string): string =>
  topic.length > TopicName.maxLength ? `${topic.slice(0, TopicName.maxLength)}…` : topic

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

const expected = (what: string, found: unknown, allowed: string): string =>
  `its ${what} is ${kindOf(found)}, and ${allowed} is expected`

/** Numbers say what is wrong with them; texts and objects may be content. */
const kindOf = (found: unknown): string =>
  typeof found === "number" ? String(found) : found === null ? "null" : `a value of type ${typeof found}`
