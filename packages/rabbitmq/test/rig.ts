/** Helpers of the tests on RabbitMQ: orders, and consumers that note what they get. */
import { Message, MessageConsumer, type MessageRetry, type MessagingException, Topic } from "@eventbus/messaging"
import type { MessageBroker } from "@eventbus/messaging/MessageBroker"
import { RabbitMqError } from "@eventbus/rabbitmq"
import { Data, Effect, Schema, type Scope } from "effect"

export const Order = Schema.Struct({ id: Schema.Number })

export const orders = Topic.json("orders", Order)

/** An error that another try may cure. */
export class Boom extends Data.TaggedError("Boom")<{ readonly message: string }> {}

/** An error that no other try cures. */
export class Hopeless extends Data.TaggedError("Hopeless")<{ readonly message: string }> {
  readonly retryable = false
}

type Received = Message.ReceivedMessage<typeof Order.Type>

/** A consumer's calls, and the topics of its dead letters. */
export interface Probe {
  readonly calls: Array<Received>
  readonly letters: Array<string>
}

export interface Given {
  readonly groupId?: string
  readonly retry?: MessageRetry.Options
  readonly handle?: (message: Received) => Effect.Effect<unknown, unknown>
}

/** Consumes orders until the scope closes. */
export const probing = (
  broker: MessageBroker["Service"],
  { groupId = "g", retry = { maxAttempts: 1 }, handle = () => Effect.void }: Given = {}
): Effect.Effect<Probe, MessagingException.MessagingException, Scope.Scope> => {
  const probe: Probe = { calls: [], letters: [] }
  const consumer = MessageConsumer.make({
    ...{ topics: [orders], groupId, retry, shutdownTimeout: "5 seconds" },
    handle: (message) => {
      probe.calls.push(message)
      return handle(message)
    }
  })
  return Effect.as(broker.consume(consumer, { onDeadLetter: (topic) => void probe.letters.push(topic) }), probe)
}

/** Sends an order, as a producer does. */
export const sendOrder = (
  broker: MessageBroker["Service"],
  id: number,
  { key, headers = {} }: { readonly key?: string; readonly headers?: Message.Headers } = {}
) =>
  Effect.flatMap(Message.of({ id }, orders, key, headers), (message) =>
    broker.send({ ...message, headers: { ...headers, [Message.idHeader]: message.id } })
  )

/** Waits until it holds, 20 seconds at most. */
export const until = (what: string, holds: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let waited = 0; !holds(); waited += 20) {
      if (waited > 20_000) return yield* Effect.die(`never: ${what}`)
      yield* Effect.sleep("20 millis")
    }
  })

/** The kind of a failure, and its text. */
export const reasonOf = (error: unknown): readonly [string, string] => {
  const inner = error instanceof RabbitMqError.RabbitMqError ? error : (error as { readonly cause?: unknown }).cause
  return inner instanceof RabbitMqError.RabbitMqError
    ? [inner.reason, inner.message]
    : ["no RabbitMqError", String(error)]
}
