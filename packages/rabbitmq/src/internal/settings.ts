/** The options of a broker, checked and complete. */
import * as Kinds from "@eventbus/core/Kinds"
import * as Ranges from "@eventbus/core/Ranges"
import * as MessageRetry from "@eventbus/messaging/MessageRetry"
import * as Redacted from "effect/Redacted"
import type { Options, Tls } from "./options.ts"

/** The options with their defaults; durations in milliseconds. */
export interface Settings {
  readonly hosts: ReadonlyArray<string>
  readonly username: string
  readonly password: Redacted.Redacted
  readonly vhost: string
  readonly tls: boolean | Tls
  readonly heartbeatSeconds: number
  readonly connectTimeoutMillis: number
  readonly connectionName: string
  readonly exchangePrefix: string
  readonly queuePrefix: string
  readonly sendTimeoutMillis: number
  readonly maxUnconfirmed: number
  readonly prefetch: number
  readonly concurrency: number
  readonly retry: MessageRetry.MessageRetry
  readonly deliveryLimit: number
  readonly maxQueueLength: number | undefined
}

const textOrSecret: Kinds.Kind = Kinds.hidden(
  "a text, or a Redacted with a text in it",
  (value) => typeof value === "string" || (Redacted.isRedacted(value) && typeof Redacted.value(value) === "string")
)

const tls = Kinds.section(
  {
    ca: (path, found) => (Array.isArray(found) ? Kinds.listOf(textOrSecret)(path, found) : textOrSecret(path, found)),
    cert: textOrSecret,
    ...{ key: Kinds.redacted, passphrase: Kinds.redacted },
    ...{ servername: Kinds.string, rejectUnauthorized: Kinds.flag }
  },
  {},
  "true, false, or an object of settings"
)

const hosts: Kinds.Kind = (path, found) =>
  Array.isArray(found) && found.length > 0
    ? Kinds.listOf(Kinds.address)(path, found)
    : Kinds.hidden("a list of one or more addresses, host:port", () => false)(path, found)

const heartbeat: Kinds.Kind = (path, found) => {
  const outside = Ranges.problems(path, found, { minimum: 1_000, maximum: 65_535_000, kind: "duration" })
  if (outside.length > 0) return outside
  return Kinds.make("a whole number of seconds, as AMQP has no other", () => isWholeSeconds(found))(path, found)
}

const isWholeSeconds = (found: unknown): boolean => Ranges.millisOf(found as number) % 1_000 === 0

/** Exchanges and queues that begin with `amq.` are RabbitMQ's own, and 100 bytes leave room for topic and group. */
const prefix = Kinds.make(
  "a text of 1 to 100 bytes that does not begin with 'amq.'",
  (value) =>
    Kinds.nameProblem(value) === undefined &&
    Buffer.byteLength(value as string) <= 100 &&
    !(value as string).startsWith("amq.")
)

const options = Kinds.section({
  hosts,
  ...{ username: Kinds.string, password: Kinds.redacted, vhost: Kinds.string, connectionName: Kinds.string },
  tls: (path: string, found: unknown) => (typeof found === "boolean" ? [] : tls(path, found)),
  heartbeat,
  connectTimeout: Ranges.clients.connectTimeout,
  ...{ exchangePrefix: prefix, queuePrefix: prefix },
  sendTimeout: Ranges.producer.deliveryTimeout,
  maxUnconfirmed: { minimum: 1, maximum: 100_000, kind: "whole" },
  prefetch: { minimum: 1, maximum: 65_535, kind: "whole" },
  concurrency: Ranges.binding.concurrency,
  retry: MessageRetry.kind,
  deliveryLimit: { minimum: 1, maximum: 2_147_483_647, kind: "whole" },
  maxQueueLength: { minimum: 1, maximum: 2_147_483_647, kind: "whole" }
})

/** Throws `ConfigurationValidation` with everything that is wrong. It shows no secret. */
export const settingsOf = (given: Options): Settings => {
  Kinds.refuse(options("RabbitMq", given))
  return {
    hosts: given.hosts ?? ["127.0.0.1:5672"],
    username: given.username ?? "guest",
    password: given.password ?? Redacted.make("guest"),
    vhost: given.vhost ?? "/",
    tls: given.tls ?? false,
    heartbeatSeconds: Ranges.millisOf(given.heartbeat ?? 10_000) / 1_000,
    connectTimeoutMillis: Ranges.millisOf(given.connectTimeout ?? 10_000),
    connectionName: given.connectionName ?? "eventbus",
    exchangePrefix: given.exchangePrefix ?? "unraveldocs",
    queuePrefix: given.queuePrefix ?? "unraveldocs",
    sendTimeoutMillis: Ranges.millisOf(given.sendTimeout ?? 30_000),
    maxUnconfirmed: given.maxUnconfirmed ?? 1_000,
    prefetch: given.prefetch ?? 200,
    concurrency: given.concurrency ?? 3,
    retry: MessageRetry.make(given.retry ?? {}),
    deliveryLimit: given.deliveryLimit ?? 100,
    maxQueueLength: given.maxQueueLength
  }
}
