/**
 * The headers of Spring Kafka's dead letters, as version 4.1.2 writes them with and without retry topics (ruling 60). The connector writes them for tools that
 * expect them; `springLetter.ts` reads them.
 */
import type { Header } from "../../ConsumerRecord.ts"
import { type DeadLetter, text } from "./deadLetterHeaders.ts"

/** `retry-topic`: the names that `@RetryableTopic` writes. `plain`: names that all start with `kafka_dlt-`. */
export type Form = "retry-topic" | "plain"

interface Names {
  readonly topic: string
  readonly partition: string
  readonly offset: string
  readonly timestamp: string
  readonly timestampType: string
  readonly className: string
  readonly causeClassName: string
  readonly message: string
  readonly stackTrace: string
}

/** The names of the headers that differ between the forms. */
export const names: Readonly<Record<Form, Names>> = {
  "retry-topic": {
    topic: "kafka_original-topic",
    partition: "kafka_original-partition",
    offset: "kafka_original-offset",
    timestamp: "kafka_original-timestamp",
    timestampType: "kafka_original-timestamp-type",
    className: "kafka_exception-fqcn",
    causeClassName: "kafka_exception-cause-fqcn",
    message: "kafka_exception-message",
    stackTrace: "kafka_exception-stacktrace"
  },
  plain: {
    topic: "kafka_dlt-original-topic",
    partition: "kafka_dlt-original-partition",
    offset: "kafka_dlt-original-offset",
    timestamp: "kafka_dlt-original-timestamp",
    timestampType: "kafka_dlt-original-timestamp-type",
    className: "kafka_dlt-exception-fqcn",
    causeClassName: "kafka_dlt-exception-cause-fqcn",
    message: "kafka_dlt-exception-message",
    stackTrace: "kafka_dlt-exception-stacktrace"
  }
}

const consumerGroup = "kafka_dlt-original-consumer-group"
/** Four bytes: the number of the delivery that would follow. */
export const attempts = "retry_topic-attempts"
/** Epoch milliseconds in the fewest bytes. */
export const firstTimestamp = "retry_topic-original-timestamp"
/** Epoch milliseconds in the fewest bytes. */
export const dueTimestamp = "retry_topic-backoff-timestamp"

const all: ReadonlySet<string> = new Set([
  ...Object.values(names["retry-topic"]),
  ...Object.values(names.plain),
  ...[consumerGroup, attempts, firstTimestamp, dueTimestamp]
])

const diagnostic: ReadonlySet<string> = new Set(
  [names["retry-topic"], names.plain].flatMap(({ message, stackTrace }) => [message, stackTrace])
)

/** Whether this is a header of Spring's, in either form. */
export const isSpring = (key: string): boolean => all.has(key)

/** Whether a record that is too large can do without this header. */
export const isDiagnostic = (key: string): boolean => diagnostic.has(key)

const maxStackBytes = 2048

/** Builds Spring's headers of a dead letter. Texts are cut as in the connector's own headers. */
export const make = (letter: DeadLetter, groupId: string, form: Form): ReadonlyArray<Header> => {
  const { origin, failure } = letter
  const name = names[form]
  const timestamp = int64(origin.timestamp)
  const cause = failure.causes[0]
  return [
    text(name.topic, origin.topic),
    { key: name.partition, value: bigEndian(BigInt(origin.partition), 4) },
    { key: name.offset, value: bigEndian(origin.offset, 8) },
    { key: name.timestamp, value: bigEndian(timestamp, 8) },
    // A consumer does not learn whether a timestamp is CreateTime or LogAppendTime; CreateTime is the default of a topic.
    text(name.timestampType, "CreateTime"),
    text(consumerGroup, groupId),
    text(name.className, failure.className),
    ...(cause === undefined ? [] : [text(name.causeClassName, cause.className)]),
    text(name.message, failure.message),
    text(name.stackTrace, failure.stackTrace, maxStackBytes),
    ...(form === "plain" ? [] : retryTopicHeaders(letter, timestamp))
  ]
}

const retryTopicHeaders = (letter: DeadLetter, timestamp: bigint): ReadonlyArray<Header> => [
  { key: attempts, value: bigEndian(BigInt(letter.totalAttempts), 4) },
  { key: firstTimestamp, value: minimal(timestamp) },
  { key: dueTimestamp, value: minimal(BigInt(letter.nowMillis)) }
]

const bigEndian = (value: bigint, size: number): Uint8Array => {
  const bytes = new Uint8Array(size)
  for (let index = size - 1, rest = value; index >= 0; index--, rest >>= 8n) bytes[index] = Number(rest & 255n)
  return bytes
}

/** Two's complement in the fewest bytes, as Java's `BigInteger.toByteArray`. */
const minimal = (value: bigint): Uint8Array => {
  let size = 1
  while (value >= 1n << BigInt(size * 8 - 1) || value < -(1n << BigInt(size * 8 - 1))) size++
  return bigEndian(value, size)
}

const maxInt64 = 2n ** 63n - 1n

/** A time near the end of 64 bits is rounded up to 2^63 as a number, which Spring would read as a time before all others. */
const int64 = (millis: number): bigint => {
  const exact = BigInt(millis)
  return exact < maxInt64 ? exact : maxInt64
}
