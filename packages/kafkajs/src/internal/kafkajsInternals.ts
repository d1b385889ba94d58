/**
 * The internal modules of kafkajs that this package uses, typed, and checked when they are loaded. No other file imports one.
 * `kafkajsPatches.ts` repairs what is imported here.
 *
 * kafkajs has two layers. This package uses the lower one (`Broker`: connections, re-authentication, API versions). `@eventbus/kafka-client` encodes the
 * requests, keeps the nodes of a cluster, since kafkajs waits for a node that accepts a connection and does not answer, and replaces the upper layer
 * (consumer, producer), which cannot do what the Broker port promises:
 *
 * - Its consumer stops fetching during a whole rebalance, commits -2 or -1 for the group when a position is out of range, restarts
 *   retained partitions from the committed offset, and cannot be a static member.
 * - Its producer reports a record as sent that was never sent when a partition moves to a broker that has already answered the same `send`.
 *   It reuses sequence numbers after it gives up on a batch, so the broker drops the next batch as a duplicate. One bad record fails a whole request.
 * - Its record codec turns headers into a plain object. Order, null values and names like `__proto__` are lost.
 *
 * kafkajs 2.2.4 has no `exports` map, so its files can be imported. Its version is pinned exactly. The imports are static, so a bundler puts the same
 * modules here and into kafkajs itself. With a `require` at run time, a bundled program would repair one copy of kafkajs and run the other.
 */
import type { Socket } from "node:net"
import type { Mechanism } from "kafkajs"
import saslAuthenticatorModule from "kafkajs/src/broker/saslAuthenticator/index.js"
import connectionModule from "kafkajs/src/network/connection.js"
import requestQueueModule from "kafkajs/src/network/requestQueue/index.js"
import encoderModule from "kafkajs/src/protocol/encoder.js"
import apiKeysModule from "kafkajs/src/protocol/requests/apiKeys.js"

/** kafkajs's connections to one node. Fetches have a connection of their own. */
export interface ConnectionPool {
  readonly host: string
  readonly port: number
  /** The connection of every other request, and that of fetches. */
  readonly pool: readonly [KafkaConnection, KafkaConnection]
  readonly send: (request: ProtocolRequest) => Promise<unknown>
}

/** kafkajs's client of one node. */
export interface KafkaBroker {
  /** The newest version of each API that the node speaks; null until it is connected. */
  readonly versions: Readonly<
    Record<number, { readonly minVersion: number; readonly maxVersion: number } | undefined>
  > | null
  readonly isConnected: () => boolean
  /** Connects, asks for the API versions once, and authenticates. */
  readonly connect: () => Promise<void>
  /** Waits for the answers that are due. */
  readonly disconnect: () => Promise<void>
  readonly connectionPool: ConnectionPool
}

/** The parts of kafkajs's cluster object that make clients of nodes. */
export interface KafkaCluster {
  readonly rootLogger: unknown
  readonly connectionPoolBuilder: {
    readonly build: (address: { readonly host: string; readonly port: number }) => Promise<ConnectionPool>
  }
  readonly brokerPool: {
    readonly createBroker: (options: {
      readonly connectionPool: ConnectionPool
      readonly logger: unknown
    }) => KafkaBroker
  }
}

/** The encoded body of a request. */
export interface Encoded {
  readonly buf: Buffer
  readonly buffer: Buffer
  /** A longer buffer that ends with the same bytes. The request's header is written into the room before them, so the body is not copied. */
  readonly whole?: Buffer
}

export interface ProtocolRequest {
  readonly request: {
    readonly apiKey: number
    readonly apiVersion: number
    readonly apiName: string
    readonly encode: () => Promise<Encoded>
  }
  readonly response: {
    readonly decode: (payload: Buffer) => Promise<unknown>
    readonly parse: (data: unknown) => Promise<unknown>
  }
  /** Milliseconds; kafkajs's own time-out when that is longer. */
  readonly requestTimeout?: number
}

/** The version of kafkajs that this package is written for. */
export const kafkajsVersion = "2.2.4"

/** The module with its type. Throws when `check` does not find what that version has. */
const checked = <A>(name: string, module: unknown, check: (module: A) => boolean): A => {
  const typed = module as A
  if (!check(typed))
    throw new Error(`kafkajs: '${name}' is not as in version ${kafkajsVersion}, which @eventbus/kafkajs needs`)
  return typed
}

export const apiKeys = checked<Record<string, number>>(
  "protocol/requests/apiKeys",
  apiKeysModule,
  (m) => m.Fetch === 1 && m.JoinGroup === 11
)

/** The state of kafkajs's encoder. */
interface EncoderState {
  buf: Buffer
  offset: number
  whole?: Buffer
}

interface EncoderClass {
  readonly prototype: { writeEncoder: (this: EncoderState, value: Encoded) => unknown }
}

export const Encoder = checked<EncoderClass>(
  "protocol/encoder",
  encoderModule,
  (m) => typeof m?.prototype?.writeEncoder === "function"
)

interface RequestQueueClass {
  readonly prototype: {
    scheduleCheckPendingRequests: (this: RequestQueue) => void
    createSocketRequest: (this: RequestQueue, pushed: PushedRequest) => { requestTimeout: number }
    fulfillRequest: (this: RequestQueue, answer: { readonly correlationId: number }) => void
  }
}

interface PushedRequest {
  readonly entry: { readonly apiKey: number; readonly correlationId: number }
}

interface RequestQueue {
  readonly inflight: ReadonlyMap<number, unknown>
  readonly pending: ReadonlyArray<unknown>
  readonly throttledUntil: number
  throttleCheckTimeoutId: NodeJS.Timeout | null
  readonly checkPendingRequests: () => void
  readonly rejectAll: (error: Error) => void
  /** This package's addition: the longest time for each answer before a connection is ready. */
  handshakeTimeoutMillis?: number
  /** This package's addition: the correlation id of the last request. */
  lastCorrelationId?: number
}

export const requestQueue = checked<RequestQueueClass>(
  "network/requestQueue",
  requestQueueModule,
  (m) =>
    typeof m?.prototype?.scheduleCheckPendingRequests === "function" &&
    typeof m.prototype.createSocketRequest === "function" &&
    typeof m.prototype.fulfillRequest === "function"
)

export interface KafkaConnection {
  readonly requestQueue: RequestQueue
  /** Longest time for a TCP connection, with its TLS handshake, in milliseconds. */
  readonly connectionTimeout: number
  chunks: Array<Buffer>
  bytesBuffered: number
  bytesNeeded: number
  readonly socket: Socket | undefined
  readonly socketFactory: { readonly prepare?: () => Promise<void> }
  /** Milliseconds, as a Long; 0 when the broker does not limit the session (KIP-368). */
  readonly sessionLifetime: { readonly toNumber: () => number }
  readonly isConnected: () => boolean
  readonly disconnect: () => Promise<unknown>
}

/** SASL of one connection. `prepare` is this package's addition: it makes the provider for the next authentication. */
export interface ConnectionSasl {
  readonly mechanism: string
  readonly authenticationProvider?: Mechanism["authenticationProvider"]
  readonly prepare?: () => Promise<Mechanism["authenticationProvider"]>
}

interface SaslAuthenticator {
  readonly connection: { sasl: ConnectionSasl }
}

export const saslAuthenticator = checked<{
  readonly prototype: SaslAuthenticator & { authenticate: (this: SaslAuthenticator) => Promise<void> }
}>("broker/saslAuthenticator", saslAuthenticatorModule, (m) => typeof m?.prototype?.authenticate === "function")

interface ConnectionClass {
  readonly prototype: KafkaConnection & {
    connect: (this: KafkaConnection) => Promise<unknown>
    disconnect: (this: KafkaConnection) => Promise<unknown>
    processData: (this: KafkaConnection, bytes: Buffer) => void
  }
}

export const connection = checked<ConnectionClass>(
  "network/connection",
  connectionModule,
  (m) =>
    typeof m?.prototype?.connect === "function" &&
    typeof m.prototype.disconnect === "function" &&
    typeof m.prototype.processData === "function"
)
