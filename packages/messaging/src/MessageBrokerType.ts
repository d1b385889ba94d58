/**
 * The kinds of brokers.
 *
 * A broker of your own takes any other text, in capitals by custom. Which kinds a program has is decided by the layers that it gives to `MessageBrokerFactory`.
 */

/** The kind of a broker: `KAFKA`, `RABBITMQ`, or the name of a broker of your own. */
export type MessageBrokerType = "KAFKA" | "RABBITMQ" | (string & Record<never, never>)

/** The kinds that come first when no default is named, in this order. Every other kind follows in the order in which it is registered. */
export const priority: ReadonlyArray<MessageBrokerType> = ["KAFKA", "RABBITMQ"]
