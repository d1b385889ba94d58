/** From what amqplib throws, and RabbitMQ answers, to `RabbitMqError`. */
import { RabbitMqError, type Reason } from "../RabbitMqError.ts"

export const failure = (reason: Reason, detail: string): RabbitMqError => new RabbitMqError({ reason, detail })

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const codeOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined

/** The broker's own words in an error of amqplib, without the client's frame around them. */
const wordsOf = (error: unknown): string => /with message "(.*)"$/s.exec(textOf(error))?.[1] ?? textOf(error)

const differs = /inequivalent arg '([^']+)' for (\w+) '([^']+)' in vhost '([^']+)': received (.+) but current is (.+)/s

/** `'reject-publish'`, or `none`. */
const valueIn = (text: string): string => /^the value ('.*') of type '\w+'$/s.exec(text)?.[1] ?? text

/** The text for a queue or an exchange that exists with other settings. */
const declaredOtherwise = (words: string): RabbitMqError => {
  const found = differs.exec(words)
  if (found === null) return failure("DeclaredOtherwise", words)
  const [, setting, kind, name, vhost, received = "", current = ""] = found
  return failure(
    "DeclaredOtherwise",
    `${kind} '${name}' in virtual host '${vhost}' exists with other settings: '${setting}' is ${valueIn(current)} there, and ${valueIn(received)} here. ` +
      `Give the consumer the settings that the ${kind} has, or delete the ${kind} when it is empty.`
  )
}

/** An answer of RabbitMQ to a request on a channel, or the loss of that channel. */
export const ofChannel = (error: unknown): RabbitMqError => {
  if (error instanceof RabbitMqError) return error
  const words = wordsOf(error)
  switch (codeOf(error)) {
    case 406:
      return words.includes("inequivalent arg") ? declaredOtherwise(words) : failure("Refused", words)
    case 403:
      return failure("AccessRefused", words)
    case undefined:
      return failure("Unreachable", `the connection to RabbitMQ was lost (${words})`)
    default:
      return failure("Refused", words)
  }
}

/** Node.js's codes for a handshake that failed, and for a certificate that is not trusted. */
const tlsCodes = /^(?:ERR_TLS|ERR_SSL|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|CERT_|CRL_|INVALID_CA|HOSTNAME_MISMATCH)/

const isOfTls = (error: unknown): boolean => {
  const code = codeOf(error)
  return typeof code === "string" && tlsCodes.test(code)
}

/** A connection that could not be opened. */
export const ofConnect = (error: unknown, address: string): RabbitMqError => {
  const words = wordsOf(error)
  if (words.startsWith("ACCESS_REFUSED")) {
    const login = `RabbitMQ at ${address} refused the login (${words}). Check user name, password and virtual host.`
    return failure("LoginRefused", login)
  }
  // RabbitMQ closes a connection to a virtual host that does not exist, or is closed to the user, where it would open it.
  if (words.includes("Expected ConnectionOpenOk")) {
    const host = `RabbitMQ at ${address} refused the virtual host. Check that it exists, and that the user has permissions in it.`
    return failure("LoginRefused", host)
  }
  if (isOfTls(error)) {
    const help = "Check `tls`: the authority, the name that the certificate has, and that the port takes TLS."
    return failure("TlsFailed", `RabbitMQ at ${address}: TLS failed (${words.split("\n", 1)[0]}). ${help}`)
  }
  return failure(
    "Unreachable",
    `RabbitMQ at ${address} cannot be reached (${words}). Check the address, and that it runs.`
  )
}

/** A connection that was closed. */
export const ofLoss = (error: unknown, address: string): RabbitMqError =>
  failure(
    "Unreachable",
    `the connection to RabbitMQ at ${address} was lost (${error === undefined ? "closed" : wordsOf(error)}).`
  )

interface Destination {
  readonly exchange: string
  readonly routingKey: string
}

const destinationText = ({ exchange, routingKey }: Destination): string =>
  exchange === "" ? `queue '${routingKey}'` : `exchange '${exchange}'`

/** No queue takes the message. */
export const unroutable = (to: Destination): RabbitMqError =>
  failure(
    "Unroutable",
    `no queue takes a message to ${destinationText(to)}: RabbitMQ returned it. A topic has queues once a group consumes it.`
  )

/** A queue refused the message. */
export const queueFull = (to: Destination): RabbitMqError =>
  failure(
    "QueueFull",
    `a queue refused a message to ${destinationText(to)}: it has reached its length limit, or is out of order.`
  )

/** amqplib cannot write the message. */
export const unencodable = (error: unknown): RabbitMqError =>
  failure("Unencodable", `the message cannot be written in AMQP (${wordsOf(error)}).`)
