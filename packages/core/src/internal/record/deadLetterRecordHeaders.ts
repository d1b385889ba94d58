/**
 * Header sets beside the connector's own, for tools that know others: Spring's, the five of the brokers package, and the trail as JSON (ruling 25).
 */
import type { Header } from "../../ConsumerRecord.ts"
import * as DeadLetterHeaders from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import * as Spring from "./springHeaders.ts"

/** What is written beside our own headers. Default: nothing. */
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

/** All headers of a dead letter copy: the user's, ours, then the other sets. A header of a set that is written replaces one of an earlier time. */
export const make = (
  letter: DeadLetterHeaders.DeadLetter,
  groupId: string,
  sets: HeaderSets
): ReadonlyArray<Header> => {
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
 * The headers of a copy that was too large for its topic `times` times (ruling 22): first without message, stack trace and trail of every set; then with no
 * more than where it comes from and where it is; then with what bounds its way through the tiers only. The user's own headers, and the value, stay.
 */
export const trim = (headers: ReadonlyArray<Header>, times: number): ReadonlyArray<Header> => {
  if (times === 1) return DeadLetterHeaders.withoutDiagnostics(headers).filter(({ key }) => !Spring.isDiagnostic(key))
  const kept = times === 2 ? essential : bounding
  return withoutOtherFormats(headers).filter(({ key }) => kept.has(key) || !Names.isRewritten(key))
}

/** Without its delivery number, a record would begin its tier anew each time. */
const bounding: ReadonlySet<string> = new Set([Names.retryTier, Names.retryAttempt])

const essential: ReadonlySet<string> = new Set([
  ...bounding,
  Names.originalTopic,
  Names.originalPartition,
  Names.originalOffset,
  Names.dltReason
])

/**
 * For a record that starts anew: without what a dead letter says of itself. The five names of the brokers package are common words; they are taken away
 * only when all of them are there.
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

/** Not cut, for it would not be JSON any more: a trail is a few short entries. */
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
