/**
 * Reads a dead letter that Spring Kafka stored: where it was first, why it failed, how often it was delivered, and the bytes of a value that Spring could not read.
 * Headers are untrusted input: what is missing or malformed is undefined.
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as TopicName from "../../TopicName.ts"
import type { Origin } from "./deadLetterHeaders.ts"
import * as HeaderValues from "./headerValues.ts"
import * as Spring from "./springHeaders.ts"

const forms = [Spring.names["retry-topic"], Spring.names.plain]

/** The origin of a record that Spring dead-lettered; undefined when its headers do not say. */
export const readOrigin = (record: ConsumerRecord): Origin | undefined => {
  // Spring may append a header where others replace it: the first value is nearest to the origin.
  const headers = new Map(
    record.headers
      .filter(({ key }) => Spring.isSpring(key))
      .reverse()
      .map(({ key, value }) => [key, value])
  )
  for (const name of forms) {
    const topic = HeaderValues.text(headers.get(name.topic)) ?? ""
    const partition = HeaderValues.bigEndian(headers.get(name.partition), 4)
    const offset = HeaderValues.bigEndian(headers.get(name.offset), 8)
    if (TopicName.illegal(topic) !== undefined || partition === undefined || offset === undefined) continue
    const timestamp = HeaderValues.bigEndianTimestamp(headers.get(name.timestamp)) ?? record.timestamp
    return { topic, partition: Number(partition), offset, timestamp }
  }
  return undefined
}

/** The last exception in Spring's headers. Spring wraps the exception of a listener, so its cause is the original one. */
export const readException = (
  headers: ReadonlyArray<Header>
): { readonly className: string; readonly message: string } | undefined => {
  const last = new Map(headers.filter(({ key }) => Spring.isSpring(key)).map(({ key, value }) => [key, value]))
  for (const name of forms) {
    const className =
      HeaderValues.text(last.get(name.causeClassName)) ?? HeaderValues.text(last.get(name.className)) ?? ""
    if (className !== "") return { className, message: HeaderValues.text(last.get(name.message)) ?? "" }
  }
  return undefined
}

/** Deliveries before the record was stored. Spring's header counts the one that would follow, too; it appends a value at each, so the last one counts. */
export const readAttempts = (headers: ReadonlyArray<Header>): number | undefined => {
  const next = HeaderValues.bigEndian(HeaderValues.last(headers, Spring.attempts), 4)
  return next === undefined ? undefined : Math.max(0, Number(next) - 1)
}

interface Content {
  readonly value: Uint8Array | null
  readonly headers: ReadonlyArray<Header>
}

/** Names the type of a value that Spring's JSON serializer has written. */
const typeHeader = "__TypeId__"

/** Java's name of an array of bytes. */
const byteArray = "[B"

const deserialization = "org.springframework.kafka.support.serializer.DeserializationException"

/**
 * The content that Spring was given. Spring hands a value that it could not read to its serializer as an array of bytes, and its JSON serializer makes a text in Base64 of it and
 * names the type `[B`. Here are the bytes, without that name.
 */
export const readContent = (record: ConsumerRecord): Content => {
  const { value, headers } = record
  const bytes = isUnreadByJson(headers) ? bytesIn(value) : undefined
  if (bytes === undefined) return { value, headers }
  return { value: bytes, headers: headers.filter(({ key }) => key !== typeHeader) }
}

/** An array of bytes that the service itself sent has the type `[B`, too, but no error of a deserializer. */
const isUnreadByJson = (headers: ReadonlyArray<Header>): boolean =>
  HeaderValues.text(HeaderValues.last(headers, typeHeader)) === byteArray &&
  forms.some((name) =>
    [name.className, name.causeClassName].some(
      (key) => HeaderValues.text(HeaderValues.last(headers, key)) === deserialization
    )
  )

/** The bytes of a JSON text in Base64, if the value is one. No pattern is matched: a value may have many megabytes. */
const bytesIn = (value: Uint8Array | null): Uint8Array | undefined => {
  const json = HeaderValues.text(value) ?? ""
  const text = json.slice(1, -1)
  if (json.length < 2 || json !== `"${text}"` || text.length % 4 !== 0) return undefined
  try {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
    // `atob` passes over white space, which Java's encoder never writes.
    return bytes.length === (text.length / 4) * 3 - paddingOf(text) ? bytes : undefined
  } catch {
    return undefined
  }
}

const paddingOf = (text: string): number => (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0)

/** Sizes of the numbers in bytes; `undefined` stands for a time in the fewest bytes. */
const numbers: ReadonlyMap<string, number | undefined> = new Map<string, number | undefined>([
  ...forms.flatMap(
    ({ partition, offset, timestamp }) =>
      [
        [partition, 4],
        [offset, 8],
        [timestamp, 8]
      ] as const
  ),
  [Spring.attempts, 4],
  [Spring.firstTimestamp, undefined],
  [Spring.dueTimestamp, undefined]
])

/** The decimal text of a header in which Spring Kafka stores a number in binary, such as `kafka_original-offset`. Undefined for any other header, and for bytes of another length. */
export const numberText = ({ key, value }: Header): string | undefined => {
  if (value === null || !numbers.has(key)) return undefined
  const size = numbers.get(key) ?? Math.min(8, value.length)
  return HeaderValues.bigEndian(value, size)?.toString()
}
