/** The options of a broker, as a program gives them. */
import type { Time } from "@eventbus/core/Time"
import type * as MessageRetry from "@eventbus/messaging/MessageRetry"
import type * as Redacted from "effect/Redacted"

/** How to reach RabbitMQ, and how to use it. Only what differs from the defaults has to be given. */
export interface Options {
  /** Addresses of the cluster, `host:port`, tried one after the other. Default `127.0.0.1:5672`; with TLS the port is usually 5671. */
  readonly hosts?: ReadonlyArray<string>
  /** User. Default `guest`, which RabbitMQ accepts from its own machine only. */
  readonly username?: string
  /** Password of the user. Default `guest`. No message and no log line shows it. */
  readonly password?: Redacted.Redacted
  /** Virtual host. Default `/`. */
  readonly vhost?: string
  /** `true` uses TLS and trusts the certificate authorities of Node.js. Default `false`. */
  readonly tls?: boolean | Tls
  /** A connection without a sign of life for two of these is lost. Whole seconds, 1 to 65535; RabbitMQ's own setting wins where it is shorter. Default 10 seconds. */
  readonly heartbeat?: Time
  /** Longest time that opening the layer waits for RabbitMQ, and that one attempt to connect takes. 1 ms or more. Default 10 seconds. Later the client connects again by itself. */
  readonly connectTimeout?: Time
  /** Names the connections in RabbitMQ's lists. Default `eventbus`. */
  readonly connectionName?: string
  /** Stands before the names of exchanges, with a dot. 1 to 100 bytes. Default `unraveldocs`, the seed's. */
  readonly exchangePrefix?: string
  /** Stands before the names of queues, with a dot. 1 to 100 bytes. Default `unraveldocs`, the seed's. */
  readonly queuePrefix?: string
  /** Longest wait for the confirmation of a message, reconnections included. 1 ms or more, kept to a twentieth. Default 30 seconds. */
  readonly sendTimeout?: Time
  /** Most messages that are sent and not confirmed; further ones wait in the process. 1 to 100,000. Default 1,000. */
  readonly maxUnconfirmed?: number
  /** Most messages of each topic that RabbitMQ delivers before they are acknowledged, 1 to 65,535. Default 200, and more where `concurrency` and batches need it. */
  readonly prefetch?: number
  /** Handlers at once of a consumer that does not say it, 1 or more. Default 3. */
  readonly concurrency?: number
  /** The retry of a consumer that does not say it. Default: the defaults of `MessageRetry`. */
  readonly retry?: MessageRetry.Options
  /**
   * How often a message may come back to its queue unacknowledged, because its process ended or lost its connection, before it is dead-lettered. 1 or more. Default 100. It is a
   * setting of the queue: a change needs a new queue.
   */
  readonly deliveryLimit?: number
  /** Most messages of a group's queue; sends to a topic with a full queue fail. 1 or more. Default: no limit. It is a setting of the queue. */
  readonly maxQueueLength?: number
}

/** Options of TLS, in the PEM format. */
export interface Tls {
  /** Certificate authorities that are trusted in place of those of Node.js. */
  readonly ca?: string | Redacted.Redacted | ReadonlyArray<string | Redacted.Redacted>
  /** The client's certificate. Default none. */
  readonly cert?: string | Redacted.Redacted
  /** The client's key. Default none. */
  readonly key?: Redacted.Redacted
  /** The passphrase of the key. Default none. */
  readonly passphrase?: Redacted.Redacted
  /** The name that the server's certificate must have. Default: the host. */
  readonly servername?: string
  /** `false` accepts every certificate. Default `true`. */
  readonly rejectUnauthorized?: boolean
}
