/** A copy of a record that the handler could not handle, before the copy is published. */
import type * as Effect from "effect/Effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { Compression, ConsumerRecord, Header } from "../../ConsumerRecord.ts"

export interface CopySource {
  /** No publish begins any more. Those that have begun go on (ruling 83). */
  readonly stopping: boolean
  /** False once the drain bound has passed, or the assignment is over: nothing is sent any more. */
  readonly mayPublish: () => boolean
  /** Whether nothing has been heard of the group for so long that the partition may have another owner by now. */
  readonly isUnconfirmed: () => boolean
  /** Runs the effect, and interrupts it when the partition stops. */
  readonly until: (effect: Effect.Effect<void>) => Effect.Effect<void>
  /** Runs the effect, and interrupts it once nothing may be sent any more. */
  readonly whileCopiesGoOn: (effect: Effect.Effect<void>) => Effect.Effect<void>
}

export interface Copy {
  /** The partition that holds the record. A failed publish is repeated for as long as it may publish. */
  readonly partition: CopySource
  readonly record: ConsumerRecord
  /** The target topic. */
  readonly topic: string
  /** The partition of the target topic. Default: where the key leads. */
  readonly toPartition?: number
  /** All headers of the copy. */
  readonly headers: ReadonlyArray<Header>
  /** The codec to publish it with. Default: as the binding says. */
  readonly compression?: Compression
  /** Called for every refused attempt to publish; `attempt` counts from 1. */
  readonly onRefused: (error: BrokerError, attempt: number) => void
  /** Called with the copy as it is stored in its topic, once the broker has acknowledged it. */
  readonly onStored?: ((stored: ConsumerRecord) => void) | undefined
}
