/**
 * The answer to every send: a success with the place of the message, or a failure with its reason. A send never fails in another way.
 */

import * as Failures from "@eventbus/core/Failures"

/** The answer to one send. */
export interface MessageResult {
  /** Whether the broker acknowledged the message. */
  readonly success: boolean
  /** The id of the message. */
  readonly messageId: string
  /** The name of its topic. */
  readonly topic: string
  /** Kafka: the partition. Undefined on failure, and on a broker without partitions. */
  readonly partition: number | undefined
  /** Kafka: the offset in the partition. Undefined on failure, and on a broker without offsets. */
  readonly offset: bigint | undefined
  /** When the acknowledgement came, or the failure was known, in epoch milliseconds. */
  readonly timestamp: number
  /** Why the send failed. Undefined on success. */
  readonly errorMessage: string | undefined
  /** The error behind `errorMessage`. Undefined on success. */
  readonly cause: unknown
}

/** The place of a message that a broker acknowledged. */
export interface Acknowledgement {
  /** Kafka: the partition. Undefined on a broker without partitions. */
  readonly partition?: number | undefined
  /** Kafka: the offset in the partition. Undefined on a broker without offsets. */
  readonly offset?: bigint | undefined
}

/** A success. `place` is empty on a broker without partitions. */
export const success = (
  messageId: string,
  topic: string,
  timestamp: number,
  { partition, offset }: Acknowledgement = {}
): MessageResult => ({
  success: true,
  messageId,
  topic,
  partition,
  offset,
  timestamp,
  errorMessage: undefined,
  cause: undefined
})

/** A failure with a text, or with an error, whose message is the text. */
export const failure = (messageId: string, topic: string, timestamp: number, error: unknown): MessageResult => ({
  ...{ success: false, messageId, topic, partition: undefined, offset: undefined, timestamp },
  errorMessage: typeof error === "string" ? error : Failures.fromUnknown(error).message,
  cause: error
})
