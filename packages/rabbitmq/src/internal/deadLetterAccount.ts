/** The headers that tell of a dead letter what happened: those of every broker (`DeadLetterHeaders`), and those of the connector that apply to a broker without offsets. */
import type { DeadLetterReason, Failure } from "@eventbus/core/Failure"
import * as DeadLetterHeaders from "@eventbus/messaging/DeadLetterHeaders"
import type { Headers } from "@eventbus/messaging/Message"

/** Why a message is given up. */
export interface Verdict {
  readonly failure: Failure
  readonly reason: DeadLetterReason
}

/** Its handler never came to an end: the process ended, or lost its connection, each time. */
export class DeliveryLimitReached extends Error {
  override readonly name = "DeliveryLimitReached"
  constructor(times: number) {
    super(
      `The message was delivered ${times} times and never acknowledged: a process ended, or lost its connection, each time.`
    )
  }
}

/** amqplib writes at most 64 KiB of headers. */
const maxTextLength = 4_096
const maxStackLength = 2_048

const cut = (text: string, most: number): string => text.slice(0, most).toWellFormed()

/** The account of a message whose try number `attempt` was its last. */
export const accountOf = (
  topic: string,
  attempt: number,
  { failure, reason }: Verdict,
  timestamp: number
): Headers => ({
  ...DeadLetterHeaders.make({
    originalTopic: topic,
    failure: { className: failure.className, message: cut(failure.message, maxTextLength) },
    timestamp,
    retryCount: attempt - 1
  }),
  "x-eventbus-dlt-reason": reason,
  "x-eventbus-total-attempts": String(attempt),
  "x-eventbus-last-exception-stacktrace": cut(failure.stackTrace, maxStackLength)
})
