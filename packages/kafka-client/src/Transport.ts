/**
 * The seam between the client and its connections. A transport opens clients of single nodes; a client of a node connects, negotiates versions,
 * authenticates, and sends requests. All else, from metadata to group membership, stands above it and is the same on every transport.
 *
 * Promises of a transport reject with a `ClientFailure`, whose type is one of `ClientFailure.Local`.
 */
import type * as tls from "node:tls"
import type * as Effect from "effect/Effect"
import type { SaslMechanism } from "./SaslMechanism.ts"

/** Where a node listens. */
export interface Address {
  /** A name or an IP address, without brackets. */
  readonly host: string
  /** 1 to 65535. */
  readonly port: number
}

/** The body of a request. */
export interface Body {
  /** The body itself. */
  readonly bytes: Buffer
  /** A longer buffer that ends with `bytes`. The header of the request is written into the room before them, so that the body is not copied. */
  readonly whole?: Buffer
}

/** Bytes before a body for the request's length and header. A header that does not fit costs a copy of the body. */
export const headerRoom = 512

/** One request, and how its answer is read. */
export interface Request<A> {
  /** Kafka's number of the API. */
  readonly apiKey: number
  /** The version in which the body is written. */
  readonly apiVersion: number
  /** Kafka's name of the API, for messages. */
  readonly apiName: string
  /** Whether the version is flexible (KIP-482): the headers of request and answer then have tagged fields. */
  readonly isFlexible: boolean
  /** Writes the body, when the request goes to the socket. */
  readonly encode: () => Body
  /** Reads the answer behind its header. An answer for which it throws is unreadable: the connection ends, and the request fails. */
  readonly decode: (answer: Buffer) => Decoded<A>
  /** Longest time for the answer, in milliseconds, where the node may hold it; `Settings.requestTimeoutMillis` when that is longer. */
  readonly timeoutMillis?: number
}

/** An answer as it was read. */
export interface Decoded<A> {
  /** The decoded body. */
  readonly answer: A
  /** How long the node asks this client to send it nothing more (KIP-219), in milliseconds. */
  readonly throttleMillis: number
}

/** The versions of an API that a node speaks. */
export interface VersionRange {
  /** The oldest version. */
  readonly min: number
  /** The newest version. */
  readonly max: number
}

/** A client of one node. It has a connection for fetches, which a node may hold back, and one for every other request. */
export interface NodeClient extends Address {
  /**
   * Connects, asks for the API versions, and authenticates. Fails with `ClientFailure.notAccepted` where the node does not accept the connection within
   * `connectionTimeoutMillis`, and with the type `timeout` where it then does not answer.
   */
  readonly connect: () => Promise<void>
  /** Whether a request can be sent without connecting first. */
  readonly isConnected: () => boolean
  /** Whether a request other than a fetch waits for its answer. The node answers the next one behind it. */
  readonly isBusy: () => boolean
  /** The versions of an API that the node speaks; undefined before it is connected, and for an API that the node does not have. */
  readonly versionsOf: (apiKey: number) => VersionRange | undefined
  /** The versions of the features that the cluster has agreed on (KIP-584), by name, as far as the node says. Rejects as `send` does. */
  readonly features: () => Promise<ReadonlyMap<string, number>>
  /** Sends a request, on a connection that it opens again where it has ended. Fails when no answer comes within the request time-out. */
  readonly send: <A>(request: Request<A>) => Promise<A>
  /** Closes the connections when their answers have come. */
  readonly disconnect: () => Promise<void>
  /** Closes the connections at once. Requests without an answer fail. */
  readonly closeAtOnce: () => void
}

/** The connections of one client to its cluster. */
export interface Transport {
  /** Makes the client of a node, without connecting it. */
  readonly open: (address: Address) => Promise<NodeClient>
  /** The number of IP addresses that the name of a host stands for; 1 for an address, and for a name that is not known. */
  readonly addressCount: (host: string) => Promise<number>
  /** Closes every socket at once. */
  readonly destroyAll: () => void
}

/** How connections authenticate. */
export interface Sasl {
  /** The name of the mechanism, such as `SCRAM-SHA-512`. */
  readonly mechanism: string
  /** Reads the credentials for one authentication. Rejects with a `ClientFailure`. */
  readonly prepare: () => Promise<SaslMechanism>
}

/** The settings of connections. */
export interface Settings {
  /** Kafka: `client.id`. */
  readonly clientId: string
  /** Longest time for one connection with its TLS handshake, and for each answer until it is ready, in milliseconds. */
  readonly connectionTimeoutMillis: number
  /** Longest time for reading credentials, in milliseconds. */
  readonly credentialsTimeoutMillis: number
  /** Longest time for one answer, in milliseconds. */
  readonly requestTimeoutMillis: number
  /** Options of the next TLS socket, read for each; undefined without TLS. Rejects with a `ClientFailure`. */
  readonly tls: (() => Promise<tls.ConnectionOptions>) | undefined
  /** undefined without authentication. */
  readonly sasl: Sasl | undefined
  /** Replaces secrets in a text. */
  readonly redact: (text: string) => string
}

/** Makes the transport of one client. */
export type Open = (settings: Settings) => Effect.Effect<Transport>
