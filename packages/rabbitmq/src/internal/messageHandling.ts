/**
 * The way of a message: its handler, and after a failure the next try or the dead letters.
 *
 * A message is acknowledged after its handler, or after its copy is confirmed. The message comes again if the process ends in between.
 */
import { BatchProcessing } from "@eventbus/core/EventBusError"
import type { Failure } from "@eventbus/core/Failure"
import * as Failures from "@eventbus/core/Failures"
import * as LogLine from "@eventbus/core/LogLine"
import * as UserFunction from "@eventbus/core/UserFunction"
import type { ReceivedMessage } from "@eventbus/messaging/Message"
import type { ConsumerObserver } from "@eventbus/messaging/MessageBroker"
import type { MessageConsumer } from "@eventbus/messaging/MessageConsumer"
import * as MessageRetry from "@eventbus/messaging/MessageRetry"
import type { Topic } from "@eventbus/messaging/Topic"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { backoff } from "./backoff.ts"
import type { ConsumerLines } from "./consumerLines.ts"
import { accountOf, DeliveryLimitReached, type Verdict } from "./deadLetterAccount.ts"
import { copyTo, decode, type Incoming, incomingOf, retryCopy } from "./messages.ts"
import { isDeadLetterTopic, type Names, retryQueue } from "./names.ts"
import type { Outgoing, Publisher } from "./publisher.ts"
import type { Delivery } from "./session.ts"

/** Shared by all messages of a consumer. */
export interface ConsumerContext<T, E, R> {
  readonly consumer: MessageConsumer<T, E, R>
  readonly retry: MessageRetry.MessageRetry
  readonly deliveryLimit: number
  readonly names: Names
  readonly publisher: Publisher
  readonly observer: ConsumerObserver
  readonly lines: ConsumerLines
  /** Declares what the consumer needs, where it is gone. */
  readonly redeclare: Effect.Effect<void>
  /** Done when the consumer is to stop. */
  readonly stopping: Deferred.Deferred<void>
}

/** A message with its channel. */
interface Received<T> {
  readonly delivery: Delivery
  readonly incoming: Incoming
  readonly message: ReceivedMessage<T>
}

/** A message that its handler may not have got. */
type Unread<T> = Omit<Received<T>, "message"> & Partial<Pick<Received<T>, "message">>

/** Handles one message, to its end. */
export const handleOne = <T, E, R>(
  context: ConsumerContext<T, E, R>,
  delivery: Delivery
): Effect.Effect<void, never, R> =>
  Effect.flatMap(receive(context, delivery), (received) =>
    received === undefined ? Effect.void : attempt(context, received)
  )

/** Handles a batch of one topic, to its end. The messages that the handler did not get to are answered: they are to be handled again. */
export const handleBatch = Effect.fnUntraced(function* <T, E, R>(
  context: ConsumerContext<T, E, R>,
  deliveries: ReadonlyArray<Delivery>
) {
  const received: Array<Received<T>> = []
  for (const delivery of deliveries) {
    const one = yield* receive(context, delivery)
    if (one !== undefined) received.push(one)
  }
  if (received.length === 0) return []
  const exit = yield* Effect.exit(call(context, received))
  if (Exit.isSuccess(exit)) {
    for (const one of received) settle(one)
    return []
  }
  const failures = failuresOf(exit.cause, received.length)
  if (failures === undefined) {
    for (const one of received) yield* attempt(context, one)
    return []
  }
  const end = failures.kind === "from" ? failures.failedIndex : received.length
  const failed = new Map(failures.failures.map(({ index, error }) => [index, error]))
  for (const [index, one] of received.entries()) {
    if (failed.has(index)) yield* afterFailure(context, one, Failures.fromUnknown(failed.get(index)), undefined)
    else if (index < end) settle(one)
  }
  return received.slice(end + 1).map(({ delivery }) => delivery)
})

/** Which messages of a batch failed, where the handler said so for messages that the batch has. */
const failuresOf = (cause: Cause.Cause<unknown>, size: number): BatchProcessing | undefined => {
  const error = cause.reasons.find(Cause.isFailReason)?.error
  return error instanceof BatchProcessing && error.failures.every(({ index }) => index >= 0 && index < size)
    ? error
    : undefined
}

/** How often RabbitMQ delivered the message before. It writes the header with the second delivery: before that it is the sender's. */
const deliveriesBefore = ({ fields, properties }: Delivery["message"]): number => {
  const times: unknown = properties.headers?.["x-delivery-count"]
  return fields.redelivered && typeof times === "number" ? times : 0
}

/** Reads a message. One that cannot be read, or was delivered too often, is dead-lettered, and undefined. */
const receive = <T, E, R>(
  context: ConsumerContext<T, E, R>,
  delivery: Delivery
): Effect.Effect<Received<T> | undefined> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const incoming = incomingOf(delivery.message, now)
    const { plan, message } = delivery
    const times = deliveriesBefore(message)
    if (times >= context.deliveryLimit && !isDeadLetterTopic(plan.topic)) {
      const failure = Failures.fromUnknown(new DeliveryLimitReached(times))
      return Effect.as(deadLetter(context, { delivery, incoming }, { failure, reason: "NON_RETRYABLE" }), undefined)
    }
    const decoded = decode(plan.of as Topic<T>, context.consumer.groupId, incoming)
    if (Result.isSuccess(decoded)) return Effect.succeed({ delivery, incoming, message: decoded.success })
    const failure = Failures.fromUnknown(decoded.failure)
    return Effect.as(deadLetter(context, { delivery, incoming }, { failure, reason: "NON_RETRYABLE" }), undefined)
  })

const call = <T, E, R>({ consumer }: ConsumerContext<T, E, R>, received: ReadonlyArray<Received<T>>) =>
  Effect.suspend((): Effect.Effect<unknown, E | BatchProcessing, R> => {
    const { handler } = consumer
    const [first, ...rest] = received.map(({ message }) => message)
    const returned = handler._tag === "Single" ? handler.handle(first!) : handler.handle([first!, ...rest])
    return UserFunction.checked(nameOf(consumer), returned)
  })

const nameOf = ({ name }: { readonly name: string }): string => `the handler of consumer '${name}'`

/** One try of one message. A handler of batches gets it as a batch of one. */
const attempt = <T, E, R>(context: ConsumerContext<T, E, R>, received: Received<T>): Effect.Effect<void, never, R> =>
  Effect.flatMap(Effect.exit(call(context, [received])), (exit) => {
    if (Exit.isSuccess(exit)) {
      UserFunction.settled(nameOf(context.consumer), exit.value)
      settle(received)
      return Effect.void
    }
    const typed = exit.cause.reasons.find(Cause.isFailReason)?.error
    if (typed instanceof BatchProcessing) {
      return afterFailure(context, received, Failures.fromUnknown(typed.failures[0].error), undefined)
    }
    const failure = Failures.fromCause(exit.cause) ?? Failures.fromUnknown(new Error("The handler was interrupted"))
    const said = typed === undefined ? undefined : saysOfItself(context.consumer, typed as E)
    return afterFailure(context, received, failure, said)
  })

/** The answer of the consumer's own function to a typed error. One that throws, or answers something else, means yes. */
const saysOfItself = <T, E, R>({ isRetryable, name }: MessageConsumer<T, E, R>, error: E): boolean | undefined => {
  if (isRetryable === undefined) return undefined
  try {
    return UserFunction.plain("isRetryable", isRetryable(error), "true or false") !== false
  } catch (thrown) {
    UserFunction.report(`isRetryable of consumer '${name}'`, thrown)
    return true
  }
}

/** The next try, or the dead letters. */
const afterFailure = <T, E, R>(
  context: ConsumerContext<T, E, R>,
  received: Received<T>,
  failure: Failure,
  isRetryable: boolean | undefined
): Effect.Effect<void, never, R> => {
  const { retry } = context
  const { delivery, incoming } = received
  const mayCure = isRetryable ?? MessageRetry.mayCure(retry, failure)
  const wait = mayCure ? MessageRetry.waitAfter(retry, incoming.attempt) : undefined
  if (wait === undefined) {
    return deadLetter(context, received, { failure, reason: mayCure ? "RETRIES_EXHAUSTED" : "NON_RETRYABLE" })
  }
  if (!retry.retryTopicsEnabled) return afterWaiting(context, received, wait)
  const { topic, queue } = delivery.plan
  const copied = copyUntilConfirmed(context, delivery, retryCopy(incoming, queue, wait))
  return Effect.flatMap(copied, (isCopied) => {
    if (!isCopied) return Effect.void
    settle(received)
    const { id, attempt: attempts } = incoming
    return context.lines.routed({ topic, id, attempts, failure, to: retryQueue(queue, wait) }, wait)
  })
}

/** Waits where the message is. A stop ends the wait: the message comes again. */
const afterWaiting = <T, E, R>(
  context: ConsumerContext<T, E, R>,
  { delivery, incoming, message }: Received<T>,
  wait: number
): Effect.Effect<void, never, R> => {
  const goesOn = Effect.raceFirst(
    Effect.as(Effect.sleep(wait), true),
    Effect.as(Deferred.await(context.stopping), false)
  )
  const attemptNumber = incoming.attempt + 1
  return Effect.flatMap(goesOn, (isOver) =>
    isOver && delivery.session.isAlive
      ? attempt(context, {
          delivery,
          incoming: { ...incoming, attempt: attemptNumber },
          message: { ...message, attempt: attemptNumber }
        })
      : Effect.void
  )
}

const deadLetter = <T, E, R>(
  context: ConsumerContext<T, E, R>,
  { delivery, incoming, message }: Unread<T>,
  verdict: Verdict
): Effect.Effect<void> => {
  const { topic, letters } = delivery.plan
  const { id, attempt } = incoming
  const exchange = context.names.exchange(letters)
  return Effect.gen(function* () {
    const account = accountOf(topic, attempt, verdict, yield* Clock.currentTimeMillis)
    const isCopied = yield* copyUntilConfirmed(context, delivery, copyTo(incoming, exchange, account))
    if (!isCopied) return
    settle({ delivery })
    context.observer.onDeadLetter(topic)
    const attempts = message === undefined ? attempt - 1 : attempt
    const { failure, reason } = verdict
    yield* context.lines.deadLettered({ topic, id, attempts, failure, to: letters }, reason)
  })
}

/** Publishes a copy until it is confirmed. Answers false where the message will come again instead: after the loss of its channel, at a stop, or given back. */
const copyUntilConfirmed = Effect.fnUntraced(function* <T, E, R>(
  context: ConsumerContext<T, E, R>,
  { session, plan, message }: Delivery,
  copy: Outgoing
) {
  for (let failures = 1; session.isAlive; failures++) {
    const published = yield* Effect.result(context.publisher.publish(copy))
    if (Result.isSuccess(published)) return true
    const { reason, message: why } = published.failure
    const line = `Consumer '${context.consumer.name}': the copy of message ${copy.options.messageId} of topic '${plan.topic}' is not confirmed: ${why}`
    if (reason === "Unencodable") {
      const to = isDeadLetterTopic(plan.topic) ? "queue" : "dead letters"
      yield* LogLine.error(`${line} The message goes to its ${to} as it is.`)
      if (to === "queue") yield* backoff(failures)
      session.reject(message, to)
      return false
    }
    yield* LogLine.warning(`${line} It is published again.`)
    if (reason === "Unroutable") yield* context.redeclare
    if (Deferred.isDoneUnsafe(context.stopping)) return false
    yield* backoff(failures)
  }
  return false
})

const settle = ({ delivery }: Pick<Received<unknown>, "delivery">): void => delivery.session.settle(delivery.message)
