/**
 * The headers that tell of a dead letter what happened, the same on every broker.
 */
import type { ErrorSummary } from "@eventbus/core/Failure"
import type { Headers } from "./Message.ts"

/** The names. */
export const names = {
  /** The topic that the message was first in. */
  originalTopic: "original-topic",
  /** The message of the last error. May be empty. */
  exceptionMessage: "exception-message",
  /** The class of the last error. Never empty. */
  exceptionClass: "exception-class",
  /** When the message was given up, as an ISO-8601 instant. */
  failureTimestamp: "failure-timestamp",
  /** Retries so far, 0 or more. */
  retryCount: "retry-count"
} as const

/** The headers of a message that was given up, or sent to a retry destination. */
export const make = (account: {
  /** The topic that the message was first in. */
  readonly originalTopic: string
  /** The last error. */
  readonly failure: ErrorSummary
  /** When it was given up, in epoch milliseconds. */
  readonly timestamp: number
  /** Retries so far, 0 or more. */
  readonly retryCount: number
}): Headers => ({
  [names.originalTopic]: account.originalTopic,
  [names.exceptionMessage]: account.failure.message,
  [names.exceptionClass]: account.failure.className,
  [names.failureTimestamp]: new Date(account.timestamp).toISOString(),
  [names.retryCount]: String(account.retryCount)
})

/** The number in a `retry-count` header; 0 where it is missing or no whole number. */
export const retryCountOf = (text: string | undefined): number =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : 0
