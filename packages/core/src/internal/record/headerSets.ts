/**
 * All headers of a dead letter record: the connector's own, and optional sets for other tools: Spring's, the five of the `brokers` package, and the trail as JSON
 * (ruling 25).
 */
import type { Header } from "../../ConsumerRecord.ts"
import * as DeadLetterHeaders from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import * as Spring from "./springHeaders.ts"

/** The optional header sets. Default: none. */
export interface HeaderSets {
  readonly spring?: Spring.Form | undefined
  readonly brokers?: boolean | undefined
  readonly trailJson?: boolean | undefined
}

/** The five headers of the brokers package's `KafkaErrorHandler`. */
const brokers = {
  topic: "original-topic",
  message: "exception-message",
  className: "exception-class",
  timestamp: "failure-timestamp",
  retries: "retry-count"
} as const
const brokersNames: ReadonlySet<string> = new Set(Object.values(brokers))

/** Whether this is a header that the connector writes into its copies: one of its own, or of an optional set. A copy has more of them than its source. */
export const isOfCopy = (key: string): boolean =>
  Names.isRewritten(key) || Spring.isSpring(key) || brokersNames.has(key)

/** Builds all headers of a dead letter: the user's, the connector's, then the optional sets. A written set replaces its headers of an earlier dead-lettering. */
export const make = (letter: DeadLetterHeaders.DeadLetter, groupId: string, sets: HeaderSets): Array<Header> => {
  const own = DeadLetterHeaders.make(letter)
  if (sets.spring === undefined && !sets.brokers && !sets.trailJson) return own
  const kept = own.filter(
    ({ key }) =>
      !((sets.spring !== undefined && Spring.isSpring(key)) || (sets.brokers === true && brokersNames.has(key)))
  )
  return [
    ...kept,
    ...(sets.spring === undefined ? [] : Spring.make(letter, groupId, sets.spring)),
    ...(sets.brokers === true ? brokersHeaders(letter) : []),
    ...(sets.trailJson === true ? [trailHeader(letter)] : [])
  ]
}

/**
 * Removes the headers of the optional sets, for a record that starts again. The five names of the brokers package are common words, so they are removed only when
 * all five are present.
 */
export const withoutOtherFormats = (headers: ReadonlyArray<Header>): ReadonlyArray<Header> => {
  const keys = new Set(headers.map(({ key }) => key))
  const fromBrokers = Array.from(brokersNames).every((name) => keys.has(name))
  return headers.filter(({ key }) => !Spring.isSpring(key) && !(fromBrokers && brokersNames.has(key)))
}

const brokersHeaders = (letter: DeadLetterHeaders.DeadLetter): ReadonlyArray<Header> => [
  DeadLetterHeaders.text(brokers.topic, letter.origin.topic),
  DeadLetterHeaders.text(brokers.message, letter.failure.message),
  DeadLetterHeaders.text(brokers.className, letter.failure.className),
  DeadLetterHeaders.text(brokers.timestamp, new Date(letter.nowMillis).toISOString()),
  DeadLetterHeaders.number(brokers.retries, Math.max(0, letter.totalAttempts - 1))
]

/** Never cut, because cut JSON is invalid. A trail is a few short entries. */
const trailHeader = ({ trail }: DeadLetterHeaders.DeadLetter): Header => ({
  key: Names.trailJson,
  value: encoder.encode(
    JSON.stringify(
      trail.map(({ tier, exceptionClass, exhaustedAtMillis, attempts }) => ({
        tier,
        exceptionClass,
        exhaustedAt: exhaustedAtMillis,
        attempts
      }))
    )
  )
})

const encoder = new TextEncoder()
