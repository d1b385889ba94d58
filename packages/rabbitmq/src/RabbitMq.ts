/**
 * A `MessageBroker` on RabbitMQ 3.10 or later, over AMQP 0-9-1 by amqplib.
 *
 * ```ts
 * import { MessageBrokerFactory } from "@eventbus/messaging"
 * import { RabbitMq } from "@eventbus/rabbitmq"
 * import { Redacted } from "effect"
 *
 * declare const password: string
 *
 * export const Brokers = MessageBrokerFactory.layer({
 *   brokers: [RabbitMq.layer({ hosts: ["rabbit-1:5672", "rabbit-2:5672"], username: "billing", password: Redacted.make(password) })]
 * })
 * ```
 *
 * It has two connections: RabbitMQ stops reading from one that publishes while its memory or disk runs out, and acknowledgements have to go on.
 */
import * as MessageBroker from "@eventbus/messaging/MessageBroker"
import type { MessagingException } from "@eventbus/messaging/MessagingException"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { makeBroker } from "./internal/broker.ts"
import type { Options } from "./internal/options.ts"
import { settingsOf } from "./internal/settings.ts"

export type { Options, Tls } from "./internal/options.ts"

/**
 * Connects. Throws `ConfigurationValidation` for options of another kind, which shows no password. Fails with `MessagingException` when the login is refused, or RabbitMQ does not
 * answer in time; its cause is a `RabbitMqError`.
 */
export const make = (
  options: Options = {}
): Effect.Effect<MessageBroker.MessageBroker["Service"], MessagingException, Scope.Scope> =>
  Effect.suspend(() => makeBroker(settingsOf(options)))

/** The broker as a layer, for `MessageBrokerFactory.layer`. RABBITMQ is supported exactly when this layer is given. */
export const layer = (options: Options = {}): Layer.Layer<MessageBroker.MessageBroker, MessagingException> =>
  Layer.effect(MessageBroker.MessageBroker, make(options))
