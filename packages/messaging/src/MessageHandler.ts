/**
 * The functions that a consumer calls. Its success acknowledges the messages; its failure sends them the way that `MessageRetry` says.
 */
import type { BatchProcessing } from "@eventbus/core/EventBusError"
import type * as Effect from "effect/Effect"
import type { ReceivedMessage } from "./Message.ts"

/** Handles one message. A failure, a defect or a thrown error is one failed try. */
export type MessageHandler<T, E = never, R = never> = (message: ReceivedMessage<T>) => Effect.Effect<unknown, E, R>

/**
 * Handles one or more messages of one topic, on Kafka consecutive ones of one partition. A failure with `BatchProcessing.from` or `.these` says which of them failed: the others
 * are done. After any other failure no message is known to be done: the handler gets them again one by one, to find those that fail.
 */
export type BatchMessageHandler<T, E = never, R = never> = (
  messages: readonly [ReceivedMessage<T>, ...ReadonlyArray<ReceivedMessage<T>>]
) => Effect.Effect<unknown, E | BatchProcessing, R>
