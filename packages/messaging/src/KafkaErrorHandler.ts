/**
 * Functions for a record that failed outside of a consumer: to the dead letters, back from there, or to the retry topic. It works on
 * any record, also on one that another system dead-lettered.
 *
 * Key, value and headers of a record stay as they are; five headers tell what happened (`DeadLetterHeaders`). Headers of the connector are left out, because they describe the
 * record that they were read with. The effect succeeds when the broker has acknowledged the copy: acknowledge the record then, and not before.
 */
import type { BrokerError } from "@eventbus/core/BrokerError"
import type { ConsumerRecord, Header } from "@eventbus/core/ConsumerRecord"
import * as Failures from "@eventbus/core/Failures"
import * as Publisher from "@eventbus/core/Publisher"
import type { EncodeFailure } from "@eventbus/core/Serde"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as DeadLetterHeaders from "./DeadLetterHeaders.ts"
import * as MessagingMetrics from "./MessagingMetrics.ts"

/** A dead letter names a topic that is not declared, or none: it is not sent anywhere, because whoever may write dead letters chooses what their headers say. */
export class UndeclaredTopic extends Schema.TaggedError<UndeclaredTopic>()("UndeclaredTopic", {
  /** The value of header `original-topic`. Absent where the record has no such header. */
  found: Schema.optionalKey(Schema.String),
  /** The declared topics. */
  declared: Schema.Array(Schema.String)
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    const found = this.found === undefined ? "is missing" : `is '${this.found}'`
    return `Header original-topic ${found}; allowed is a declared topic: ${this.declared.join(", ") || "none is declared"}.`
  }
}

/** A record as far as this module needs it. */
export type FailedRecord = Pick<ConsumerRecord, "topic" | "key" | "value" | "headers">

type Published<A, E = never> = Effect.Effect<A, E | BrokerError | EncodeFailure, Publisher.Producers>

/** The functions for the declared topics of a program. */
export interface KafkaErrorHandler {
  /** Sends a record to `{topic}-dlq`. The topic of a record from a declared retry topic is the one that the retry topic is of. */
  readonly routeToDlq: (record: FailedRecord, error: unknown) => Published<void>
  /** Sends a dead letter to the topic in its header `original-topic` again, with `retry-count` + 1. True when the broker has it. Fails with `UndeclaredTopic` for any other topic. */
  readonly retryFromDlq: (record: FailedRecord) => Published<true, UndeclaredTopic>
  /** Sends a record to its retry topic, with `retry-count` + 1, while `retry-count` is below `maxRetries`; else, and where there is no retry topic, to the dead letters. */
  readonly routeToRetryOrDlq: (record: FailedRecord, error: unknown, maxRetries: number) => Published<"retry" | "dlq">
  /** The retry topic of a declared topic. Undefined for any other one. */
  readonly getRetryTopic: (topic: string) => string | undefined
}

/** The topics of a program. */
export interface Options {
  /** The declared topics: those with a retry topic `{topic}-retry` and dead letters in `{topic}-dlq`. */
  readonly topics: ReadonlyArray<string>
  /** The alias of the cluster. Default `default`. */
  readonly cluster?: string
}

/** The functions for these topics. */
export const make = ({ topics, cluster }: Options): KafkaErrorHandler => {
  const declared = new Set(topics)
  const retryTopics = new Map(topics.map((topic) => [topic, `${topic}-retry`]))
  const sources = new Map(topics.map((topic) => [`${topic}-retry`, topic]))
  const sourceOf = ({ topic }: FailedRecord) => sources.get(topic) ?? topic
  const publish = (topic: string, record: FailedRecord, more: ReadonlyArray<Header>) => {
    const names = new Set(more.map(({ key }) => key))
    const headers = [...record.headers.filter(({ key }) => !names.has(key)), ...more]
    const publisher = Publisher.make({ topic, ...(cluster !== undefined && { cluster }) })
    return publisher.publish({ key: record.key, value: record.value, headers })
  }
  const account = (record: FailedRecord, error: unknown, retryCount: number) =>
    Effect.map(Clock.currentTimeMillis, (timestamp) =>
      asHeaders(
        DeadLetterHeaders.make({
          originalTopic: sourceOf(record),
          failure: Failures.fromUnknown(error),
          timestamp,
          retryCount
        })
      )
    )
  const routeToDlq: KafkaErrorHandler["routeToDlq"] = Effect.fnUntraced(function* (record, error) {
    const source = sourceOf(record)
    yield* publish(`${source}-dlq`, record, yield* account(record, error, countOf(record)))
    const metrics = yield* MessagingMetrics.make("KAFKA")
    yield* metrics.recordMessageDlq(source)
  })
  return {
    routeToDlq,
    retryFromDlq: Effect.fnUntraced(function* (record) {
      const found = textOf(record, DeadLetterHeaders.names.originalTopic)
      if (found === undefined || !declared.has(found)) {
        return yield* new UndeclaredTopic({ ...(found !== undefined && { found }), declared: topics })
      }
      yield* publish(found, record, asHeaders({ [DeadLetterHeaders.names.retryCount]: String(countOf(record) + 1) }))
      return true as const
    }),
    routeToRetryOrDlq: Effect.fnUntraced(function* (record, error, maxRetries) {
      const [retryTopic, count] = [retryTopics.get(sourceOf(record)), countOf(record)]
      // A limit that is no number ends the retries: without this it would never be reached.
      if (retryTopic === undefined || !(count < maxRetries)) {
        yield* routeToDlq(record, error)
        return "dlq" as const
      }
      yield* publish(retryTopic, record, yield* account(record, error, count + 1))
      return "retry" as const
    }),
    getRetryTopic: (topic) => retryTopics.get(topic)
  }
}

/** The last header of a name. */
const textOf = ({ headers }: FailedRecord, name: string): string | undefined => {
  const value = headers.findLast(({ key }) => key === name)?.value
  return value === undefined || value === null ? undefined : decoder.decode(value)
}

const countOf = (record: FailedRecord): number =>
  DeadLetterHeaders.retryCountOf(textOf(record, DeadLetterHeaders.names.retryCount))

const asHeaders = (texts: Readonly<Record<string, string>>): ReadonlyArray<Header> =>
  Object.entries(texts).map(([key, text]) => ({ key, value: encoder.encode(text) }))

const encoder = new TextEncoder()
const decoder = new TextDecoder()
