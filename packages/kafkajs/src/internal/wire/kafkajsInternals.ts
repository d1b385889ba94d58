/**
 * The internal modules of kafkajs that this package uses, typed, and checked when they are loaded. No other file imports one.
 * `kafkajsPatches.ts` repairs what is imported here; `connection/kafkajsCluster.ts` changes one method of kafkajs's cluster object.
 *
 * kafkajs has two layers. This package uses the lower one (`Cluster`, `Broker`: sockets, TLS, SASL, re-authentication, API versions, request
 * encodings). It replaces the upper one (consumer, producer), which cannot do what the Broker port promises:
 *
 * - Its consumer stops fetching during a whole rebalance, commits -2 or -1 for the group when a position is out of range, restarts
 *   retained partitions from the committed offset, and cannot be a static member.
 * - Its producer reports a record as sent that was never sent when a partition moves to a broker that has already answered the same `send`.
 *   It reuses sequence numbers after it gives up on a batch, so the broker drops the next batch as a duplicate. One bad record fails a whole request.
 * - Its record codec turns headers into a plain object. Order, null values and names like `__proto__` are lost.
 *
 * kafkajs 2.2.4 has no `exports` map, so its files can be imported. Its version is pinned exactly.
 */
import { createRequire } from "node:module"
import type { Socket } from "node:net"
import type { AuthenticationProviderArgs, Authenticator, Mechanism } from "kafkajs"
import type { Apis } from "./apis.ts"

const require = createRequire(import.meta.url)

/** kafkajs's connection pool to one node. Fetches have a connection of their own. */
export interface KafkaBroker {
  readonly isConnected: () => boolean
  readonly disconnect: () => Promise<void>
  readonly lookupRequest: (apiKey: number, definition: RequestDefinition) => (payload: unknown) => ProtocolRequest
  readonly connectionPool: {
    readonly send: (request: ProtocolRequest) => Promise<unknown>
  }
  metadata: (topics: ReadonlyArray<string>) => Promise<Apis["Metadata"]["response"]>
}

/** kafkajs's view of a cluster: its nodes, their addresses, and the metadata of the requested topics. */
export interface KafkaCluster {
  readonly connect: () => Promise<void>
  readonly disconnect: () => Promise<void>
  readonly brokerPool: {
    createBroker: (options: unknown) => KafkaBroker
    readonly findBroker: (node: { readonly nodeId: number }) => Promise<KafkaBroker>
    readonly findConnectedBroker: () => Promise<KafkaBroker>
    readonly refreshMetadata: (topics: ReadonlyArray<string>) => Promise<void>
    /** The answer to the last `refreshMetadata`. */
    readonly metadata: Apis["Metadata"]["response"]
  }
}

/** The encoded body of a request. */
export interface Encoded {
  readonly buf: Buffer
  readonly buffer: Buffer
  /** A longer buffer that ends with the same bytes. The request's header is written into the room before them, so the body is not copied. */
  readonly whole?: Buffer
}

/** Bytes before a body for the request's length and header. With a client id longer than 490 bytes the header does not fit, and the body is copied. */
export const requestHeaderRoom = 512

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
}

export interface RequestDefinition {
  readonly versions: ReadonlyArray<string>
}

export interface Writer extends Encoded {
  readonly writeInt8: (value: number) => Writer
  readonly writeInt16: (value: number) => Writer
  readonly writeInt32: (value: number) => Writer
  readonly writeBoolean: (value: boolean) => Writer
  readonly writeString: (value: string | null) => Writer
  readonly writeBytes: (value: Buffer) => Writer
  readonly writeArray: (values: ReadonlyArray<Writer | string>) => Writer
}

export interface Reader {
  readonly readInt8: () => number
  readonly readInt16: () => number
  readonly readInt32: () => number
  readonly readString: () => string | null
  readonly readBytes: () => Buffer
  readonly readArray: <A>(decode: (reader: Reader) => A) => Array<A>
}

interface Codec {
  readonly decompress: (buffer: Buffer) => Promise<Buffer>
}

const required = <A>(path: string, check: (module: A) => boolean): A => {
  const module: A = require(path)
  if (!check(module)) {
    throw new Error(`kafkajs: '${path}' is not as in 2.2.4, which this adapter needs`)
  }
  return module
}

export const definitions = required<{ readonly requests: Record<string, RequestDefinition> }>(
  "kafkajs/src/protocol/requests",
  (m) => m.requests?.Fetch !== undefined && m.requests.JoinGroup !== undefined
).requests

export const apiKeys = required<Record<string, number>>(
  "kafkajs/src/protocol/requests/apiKeys",
  (m) => m.Fetch === 1 && m.JoinGroup === 11
)

export const errorCodes = required<{
  readonly errorCodes: ReadonlyArray<{ readonly type: string; readonly code: number }>
}>("kafkajs/src/protocol/error", (m) => Array.isArray(m.errorCodes)).errorCodes

/** The state of kafkajs's encoder. */
interface WriterState {
  buf: Buffer
  offset: number
  whole?: Buffer
}

interface WriterClass {
  new (size?: number): Writer
  readonly prototype: { writeEncoder: (this: WriterState, value: Encoded) => unknown }
}

export const Encoder = required<WriterClass>(
  "kafkajs/src/protocol/encoder",
  (m) => typeof m?.prototype?.writeEncoder === "function"
)

export const Decoder = required<new (buffer: Buffer) => Reader>(
  "kafkajs/src/protocol/decoder",
  (m) => typeof m === "function"
)

export const compression = required<{ readonly Codecs: Record<number, (() => Codec) | undefined> }>(
  "kafkajs/src/protocol/message/compression",
  (m) => typeof m.Codecs === "object"
)

type PasswordMechanism = (credentials: {
  readonly username: string
  readonly password: string
}) => (connection: AuthenticationProviderArgs) => Authenticator

const passwordMechanism = (name: string) =>
  required<PasswordMechanism>(`kafkajs/src/broker/saslAuthenticator/${name}`, (m) => typeof m === "function")

export const passwordMechanisms = {
  plain: passwordMechanism("plain"),
  "scram-sha-256": passwordMechanism("scram256"),
  "scram-sha-512": passwordMechanism("scram512")
}

interface RequestQueueClass {
  readonly prototype: { scheduleCheckPendingRequests: (this: RequestQueue) => void }
}

interface RequestQueue {
  readonly pending: ReadonlyArray<unknown>
  readonly throttledUntil: number
  throttleCheckTimeoutId: NodeJS.Timeout | null
  readonly checkPendingRequests: () => void
}

export const requestQueue = required<RequestQueueClass>(
  "kafkajs/src/network/requestQueue",
  (m) => typeof m?.prototype?.scheduleCheckPendingRequests === "function"
)

export interface KafkaConnection {
  readonly requestQueue: {
    readonly inflight: ReadonlyMap<number, unknown>
    readonly rejectAll: (error: Error) => void
  }
  chunks: Array<Buffer>
  bytesBuffered: number
  bytesNeeded: number
  readonly socket: Socket | undefined
  readonly socketFactory: { readonly prepare?: () => Promise<void> }
  /** Milliseconds, as a Long; 0 when the broker does not limit the session (KIP-368). */
  readonly sessionLifetime: { readonly toNumber: () => number }
  readonly isConnected: () => boolean
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

export const saslAuthenticator = required<{
  readonly prototype: SaslAuthenticator & { authenticate: (this: SaslAuthenticator) => Promise<void> }
}>("kafkajs/src/broker/saslAuthenticator", (m) => typeof m?.prototype?.authenticate === "function")

interface ConnectionClass {
  readonly prototype: KafkaConnection & {
    connect: (this: KafkaConnection) => Promise<unknown>
    disconnect: (this: KafkaConnection) => Promise<unknown>
  }
}

export const connection = required<ConnectionClass>(
  "kafkajs/src/network/connection",
  (m) => typeof m?.prototype?.connect === "function" && typeof m.prototype.disconnect === "function"
)
