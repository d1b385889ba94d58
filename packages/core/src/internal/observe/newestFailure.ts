/**
 * The newest failure of a handler in a binding, for the person who looks: what failed, of which record, and when. It outlives a stop, so that somebody who stops the
 * binding first still sees why.
 */
import type * as Clock from "effect/Clock"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { Failure } from "../../Failure.ts"
import type * as Snapshot from "../../Snapshot.ts"

/** Characters of the message that are kept. */
const longestMessage = 1_024

export interface NewestFailure {
  /** An attempt failed. Keeps texts and numbers alone: the error and the record could hold much more in memory. */
  readonly failed: (at: RecordPosition, origin: RecordPosition, failure: Failure) => void
  /** Undefined while nothing has failed. */
  readonly read: () => Snapshot.NewestFailure | undefined
}

export const make = (clock: Clock.Clock): NewestFailure => {
  let newest: Snapshot.NewestFailure | undefined
  return {
    failed: ({ topic, partition, offset }, origin, { className, message }) => {
      newest = {
        ...{ topic, partition, offset, className },
        message: message.length > longestMessage ? `${message.slice(0, longestMessage - 1)}…` : message,
        origin: { topic: origin.topic, partition: origin.partition, offset: origin.offset },
        atMillis: clock.currentTimeMillisUnsafe()
      }
    },
    read: () => newest
  }
}
