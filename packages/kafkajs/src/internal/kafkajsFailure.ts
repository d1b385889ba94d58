/** Names what kafkajs throws. It wraps the reason in other errors, so the chain of causes is searched. */
import * as ClientFailure from "@eventbus/kafka-client/ClientFailure"

const { failure, Local } = ClientFailure

const connectionNames = new Set([
  "KafkaJSConnectionError",
  "KafkaJSConnectionClosedError",
  "KafkaJSBrokerNotFound",
  "KafkaJSNoBrokerAvailableError",
  "KafkaJSLockTimeout"
])

const typeOf = (error: Error): string | undefined => {
  const type: unknown = Reflect.get(error, "type")
  return typeof type === "string" ? type : undefined
}

const named = (error: Error): ClientFailure.ClientFailure | undefined => {
  const type = typeOf(error)
  if (error.name === "KafkaJSSASLAuthenticationError" || type?.startsWith("SASL") || type?.endsWith("SASL_MECHANISM")) {
    return failure(Local.authentication, error.message)
  }
  if (type === "ILLEGAL_SASL_STATE") return failure(Local.authentication, "the listener wants no authentication")
  if (type !== undefined) return failure(type, error.message)
  const ofSocket = ClientFailure.ofSocketError(error)
  if (ofSocket?.type === Local.tls) return ofSocket
  if (error.name === "KafkaJSRequestTimeoutError") {
    const sentAt: unknown = Reflect.get(error, "sentAt")
    return {
      ...failure(Local.timeout, error.message),
      ...(typeof sentAt === "number" && { waitedMillis: Date.now() - sentAt })
    }
  }
  return connectionNames.has(error.name) ? failure(Local.connection, error.message) : ofSocket
}

export const kafkajsFailure = (thrown: unknown): ClientFailure.ClientFailure => ClientFailure.fromThrown(thrown, named)

/** An error that carries a failure through kafkajs. `retriable: false` keeps kafkajs from repeating the call. */
export const carried = ({ type, detail }: ClientFailure.ClientFailure): Error =>
  Object.assign(new Error(detail), { type, retriable: false })
