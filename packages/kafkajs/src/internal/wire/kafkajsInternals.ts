/**
 * The seam to kafkajs: every use of it that lies below its public API is in this file, typed and checked when it is loaded.
 *
 * kafkajs has two layers. The lower one (`Cluster`, `Broker`: sockets, TLS, SASL, re-authentication, API versions, request
 * encodings) is sound and is what this adapter is built on. The upper one (consumer, producer) is not used, because what it does
 * cannot be bent to the Broker port:
 *
 * - its consumer stops fetching for the whole of a rebalance, commits -2 or -1 for the group when a position is out of range,
 *   starts retained partitions again from the committed offset, and cannot be a static member;
 * - its producer reports a record as sent that it never sent when a partition moves to a broker that had already answered the
 *   same `send`, reuses sequence numbers after giving up on a batch (the broker then drops the next batch as a duplicate), and
 *   fails a whole request for one bad record;
 * - its record codec turns headers into a plain object: order, null values and names like `__proto__` are lost.
 *
 * kafkajs 2.2.4 has no `exports` map, and its version is pinned exactly.
 */
import { createRequire } from "node:module"
import type { Socket } from "node:net"
import type { AuthenticationProviderArgs, Authenticator, Mechanism } from "kafkajs"
import type { Apis } from "./apis.ts"

const require = createRequire(import.meta.url)

/** A connection pool of kafkajs to one node: connection 0 for everything, connection 1 for fetches. */
export interface KafkaBroker {
  readonly nodeId: number | string | null
  readonly isConnected: () => boolean
  readonly disconnect: () => Promise<void>
  readonly lookupRequest: (apiKey: number, definition: RequestDefinition) => (payload: unknown) => ProtocolRequest
  readonly connectionPool: {
    readonly host: string
    readonly port: number
    readonly send: (request: ProtocolRequest) => Promise<unknown>
  }
  metadata: (topics: ReadonlyArray<string>) => Promise<Apis["Metadata"]["response"]>
}

/** kafkajs's view of a cluster: its nodes, their addresses, and metadata of the topics that were asked for. */
export interface KafkaCluster {
  readonly connect: () => Promise<void>
  readonly disconnect: () => Promise<void>
  readonly removeBroker: (address: { readonly host: string; readonly port: number }) => void
  readonly findBroker: (node: { readonly nodeId: number }) => Promise<KafkaBroker>
  readonly brokerPool: {
    createBroker: (options: unknown) => KafkaBroker
    readonly findConnectedBroker: () => Promise<KafkaBroker>
    readonly refreshMetadata: (topics: ReadonlyArray<string>) => Promise<void>
  }
}

/** What kafkajs encodes a body into. */
export interface Encoded {
  readonly buf: Buffer
  readonly buffer: Buffer
  /** The same bytes at the end of a longer buffer: what goes in front of them is written there, instead of copying them behind it. */
  readonly whole?: Buffer
}

/** Bytes for a request's header and length: a client id of more than 490 bytes does not fit, and its requests are copied. */
export const requestRoom = 512

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

/** kafkajs's own state of what it writes into. */
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
  /** Milliseconds as a Long; 0 when the broker does not limit it (KIP-368). */
  readonly sessionLifetime: { readonly toNumber: () => number }
  readonly isConnected: () => boolean
}

/** SASL of one connection. `prepare` is ours: it gives the provider of the authentication that follows. */
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
