/**
 * The port of a broker, on which producers and consumers work: the only thing that a new broker implements. `MessageBrokerFactory` finds it, and code that sends and
 * receives stays as it is (MSG-10). The conformance suite `MessagingContract` holds each broker to these docstrings.
 *
 * Ids, times, headers, time limits, metrics and results are the package's: a broker moves messages, keeps waits, and says how it is.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { BrokerHealth } from "./BrokerHealth.ts"
import type { MessageConsumer } from "./ConsumerDescription.ts"
import type { Message } from "./Message.ts"
import type { MessageBrokerType } from "./MessageBrokerType.ts"
import type { Acknowledgement } from "./MessageResult.ts"
import type { MessagingException } from "./MessagingException.ts"
import type { TopicDeclaration } from "./Topic.ts"

/**
 * Abilities of a broker beyond sending and consuming.
 *
 * - `partitions`: messages of one key stay in order, and results have partition and offset.
 * - `breaker`, `pause`, `replay`, `fleet`: the connector's circuit breaker, operators' pauses, replays of dead letters, and its work over many processes.
 */
export type Capability = "partitions" | "breaker" | "pause" | "replay" | "fleet"

/** All capabilities. */
export const capabilities: ReadonlyArray<Capability> = ["partitions", "breaker", "pause", "replay", "fleet"]

/** A broker was asked for something that it does not have. */
export class UnsupportedCapability extends Schema.TaggedError<UnsupportedCapability>()("UnsupportedCapability", {
  /** The kind of the broker. */
  brokerType: Schema.String,
  /** The capability that was asked for. */
  capability: Schema.Literals(["partitions", "breaker", "pause", "replay", "fleet"])
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `${this.brokerType} has no capability '${this.capability}'. Use a broker that has it, such as KAFKA.`
  }
}

/** One broker. Its layer connects it; closing the layer sends what is waiting and closes its connections, within a bound. */
export class MessageBroker extends Context.Service<
  MessageBroker,
  {
    /** Its kind. */
    readonly type: MessageBrokerType
    /** Its abilities beyond sending and consuming. */
    readonly capabilities: ReadonlySet<Capability>
    /** How long `sendAndWait` waits for an acknowledgement, in milliseconds. */
    readonly sendTimeoutMillis: number
    /**
     * Encodes and sends one message, once. Succeeds when the broker has confirmed that it keeps the message: a message that no queue takes is a failure. `message.headers` hold
     * all headers to write, the one with the message's id included. Messages of one topic and key are kept in the order of the calls. Called concurrently.
     */
    readonly send: <T>(message: Message<T>) => Effect.Effect<Acknowledgement, Error>
    /**
     * Starts a consumer, and stops it when the scope closes: no new message then, handlers that run end within `shutdownTimeout`, and what is done is acknowledged. It
     * survives lost connections. Succeeds when the consumer is registered and all that it needs of the broker is asked for; joining may go on in the background. Fails
     * for what no waiting cures, such as a wrong setting.
     *
     * A handler's failure is decided by `isRetryable` (typed errors), then `MessageRetry.mayCure`; the waits are `MessageRetry.waitAfter`'s. The message is acknowledged after
     * its handler, or after its copy is confirmed in the retry or dead letter destination. Dead letters keep payload bytes and headers, and have those of `DeadLetterHeaders`
     * beside them. `onDeadLetter` is called once for each, with the name of the topic that the message was first in.
     */
    readonly consume: <T, E, R>(
      consumer: MessageConsumer<T, E, R>,
      observer: ConsumerObserver
    ) => Effect.Effect<void, MessagingException, R | Scope.Scope>
    /** Creates topics that are missing, and leaves those alone that exist. Fails for the first one that cannot be created, after all others were tried. */
    readonly declareTopics: (topics: ReadonlyArray<TopicDeclaration>) => Effect.Effect<void, MessagingException>
    /** How the broker is, asked of it now. Never fails; answers DOWN after 10 seconds without an answer. */
    readonly health: Effect.Effect<BrokerHealth>
  }
>()("@eventbus/messaging/MessageBroker") {}

/** Told by a broker of what its consumer did. Functions must be quick, and must not throw. */
export interface ConsumerObserver {
  /** A message was stored in the dead letter destination of this topic. */
  readonly onDeadLetter: (topic: string) => void
}

/** Fails where the broker does not have the capability. */
export const require = (
  { type, capabilities: has }: MessageBroker["Service"],
  capability: Capability
): Effect.Effect<void, UnsupportedCapability> =>
  has.has(capability) ? Effect.void : Effect.fail(new UnsupportedCapability({ brokerType: type, capability }))
