/** Header tables of AMQP, and the text headers of messages. */
import type { Headers } from "@eventbus/messaging/Message"
import type { MessageProperties } from "amqplib"

/** A header table, as amqplib reads it. */
export type Table = Readonly<Record<string, unknown>>

/** Headers of this package, which handlers do not see. */
export const names = {
  /** The key of a message in a retry queue, where the routing key is the queue's name. */
  key: "x-eventbus-key",
  /** Which try of its message a copy in a retry queue is for, from 2. */
  attempt: "x-eventbus-attempt",
  /** Marks a payload that is null, which AMQP cannot tell from an empty one. */
  tombstone: "x-eventbus-tombstone",
  /** When the message was made, in epoch milliseconds: AMQP's own property has seconds. RabbitMQ's interceptor of timestamps uses the same name. */
  timestamp: "timestamp_in_ms"
} as const

const own: ReadonlySet<string> = new Set(Object.values(names))

/** Headers that RabbitMQ writes: how often it delivered a message, and which queues it expired in. */
const ofBroker = /^x-(?:death|(?:first|last)-death-\w+|delivery-count|acquired-count)$/

/** RabbitMQ routes a message by these headers, too, and refuses the channel for values that are no lists. */
export const routing: ReadonlyArray<string> = ["CC", "BCC"]

/** The table without what RabbitMQ and this package add. A copy is made with it, so values keep their types. */
export const carriedOver = (table: Table): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(table).flatMap(([name, value]) =>
      own.has(name) || ofBroker.test(name) || routing.includes(name) ? [] : [[name, writable(value)]]
    )
  )

/** amqplib takes every large number for a 64-bit integer, and throws for those that are none. */
const writable = (value: unknown): unknown => {
  if (typeof value === "number") return isInt64(value) ? value : { "!": "double", value }
  if (typeof value !== "object" || value === null || Buffer.isBuffer(value) || "!" in value) return value
  if (Array.isArray(value)) return value.map(writable)
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, writable(entry)]))
}

const isInt64 = (value: number): boolean => Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63

/** The headers that a handler sees, as text. */
export const texts = (table: Table): Headers => {
  const headers: Record<string, string> = {}
  for (const name in table) {
    if (!(own.has(name) || ofBroker.test(name))) headers[name] = text(table[name])
  }
  return headers
}

/** A text stays as it is; numbers and booleans are as JavaScript writes them, timestamps are ISO instants, bytes UTF-8 or else Base64, tables and lists JSON, and nothing is "". */
export const text = (value: unknown): string => {
  if (typeof value === "string") return value
  const plain = plainOf(value)
  return typeof plain === "object" && plain !== null ? JSON.stringify(plain) : String(plain ?? "")
}

const plainOf = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Buffer.isBuffer(value)) return bytesText(value)
  if (Array.isArray(value)) return value.map(plainOf)
  if ("!" in value && "value" in value) return taggedText(value["!"], value.value)
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, plainOf(entry)]))
}

const bytesText = (bytes: Buffer): string => {
  const decoded = bytes.toString("utf8")
  return decoded.includes("\ufffd") ? bytes.toString("base64") : decoded
}

/** Values that amqplib tags, as JavaScript has no type for them. */
const taggedText = (tag: unknown, value: unknown): unknown => {
  if (tag === "timestamp") return instantText(Number(value) * 1_000)
  if (tag === "decimal" && typeof value === "object" && value !== null && "places" in value && "digits" in value) {
    return decimalText(String(value.digits), Number(value.places))
  }
  return plainOf(value)
}

const lastMillis = 8_640_000_000_000_000

const instantText = (millis: number): string =>
  Math.abs(millis) <= lastMillis ? new Date(millis).toISOString() : String(millis / 1_000)

const decimalText = (digits: string, places: number): string => {
  if (places === 0) return digits
  const padded = digits.padStart(places + 1, "0")
  return `${padded.slice(0, -places)}.${padded.slice(-places)}`
}

/** When a message was made, in epoch milliseconds: exact where this package sent it, to the second where another client gave AMQP's property. Undefined where nobody said it. */
export const timestampOf = ({ headers = {}, timestamp }: MessageProperties): number | undefined => {
  const millis: unknown = headers[names.timestamp]
  if (isMillis(millis)) return millis
  const ofProperty = Number(timestamp ?? Number.NaN) * 1_000
  return isMillis(ofProperty) ? ofProperty : undefined
}

const isMillis = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= lastMillis
