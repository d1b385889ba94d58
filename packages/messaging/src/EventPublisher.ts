/**
 * Publishes events to their topics by the default broker. The key of a message is the event's correlation id, its value the payload alone.
 *
 * Methods for one topic each, such as `publishUserEvent`, are `EventPublisher.to(users)`.
 */
import * as Effect from "effect/Effect"
import type * as BaseEvent from "./BaseEvent.ts"
import type { NoBrokerRegistered } from "./BrokerRegistration.ts"
import type { EventTopic } from "./EventTopic.ts"
import type * as EventType from "./EventType.ts"
import * as Message from "./Message.ts"
import { MessageBrokerFactory } from "./MessageBrokerFactory.ts"
import type { MessageResult } from "./MessageResult.ts"
import type { MessagingException } from "./MessagingException.ts"

/**
 * Publishes an event and waits for the acknowledgement. The log says type, correlation id and topic. Fails with `MessagingException`, which is logged, too; with
 * `NoBrokerRegistered` in a program without messaging.
 */
export const publishEvent = <T extends EventType.Any>(
  topic: EventTopic<T>,
  event: NoInfer<BaseEvent.Of<T>>
): Effect.Effect<MessageResult, MessagingException | NoBrokerRegistered, MessageBrokerFactory> =>
  Effect.gen(function* () {
    const { getDefaultProducer } = yield* MessageBrokerFactory
    const { sendAndWait } = yield* getDefaultProducer
    const { eventType, correlationId } = (event as BaseEvent.BaseEvent<string, unknown>).metadata
    const message = yield* Message.of<BaseEvent.Of<T>>(event, topic, correlationId)
    const annotations = { eventType, correlationId, topic: topic.name }
    return yield* sendAndWait(message).pipe(
      Effect.tap(() => Effect.logInfo("Event published")),
      Effect.tapError((error) => Effect.logError(`Event not published: ${error.message}`, error)),
      Effect.annotateLogs(annotations)
    )
  })

/** `publishEvent` for one topic. */
export const to =
  <T extends EventType.Any>(topic: EventTopic<T>) =>
  (event: BaseEvent.Of<T>): ReturnType<typeof publishEvent<T>> =>
    publishEvent(topic, event)
