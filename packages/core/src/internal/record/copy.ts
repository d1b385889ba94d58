/** A copy of a record that could not be handled, before it is published. */
import type { Effect } from "effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"

export interface Copy {
  /** The partition that the record is in: once it stops, no attempt to publish is repeated any more. */
  readonly partition: {
    readonly stopping: boolean
    /** Waits for something, but not longer than the partition runs. */
    readonly until: (effect: Effect.Effect<void>) => Effect.Effect<void>
  }
  readonly record: ConsumerRecord
  /** Where it goes. */
  readonly topic: string
  /** All headers of the copy. */
  readonly headers: ReadonlyArray<Header>
  /** Told of every refused attempt. */
  readonly onRefused: (error: BrokerError, attempt: number) => void
  /** Told of the copy when it is acknowledged, as it lies in its topic. */
  readonly onStored?: ((stored: ConsumerRecord) => void) | undefined
}
