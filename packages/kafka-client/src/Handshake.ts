/** The requests that make a connection ready for others: ApiVersions, SaslHandshake and SaslAuthenticate. A transport sends them itself. */
import { Reader } from "./internal/protocol/reader.ts"
import { Writer } from "./internal/protocol/writer.ts"
import type { Request, VersionRange } from "./Transport.ts"

/** The version is known before the node has said which it speaks: all brokers speak these. */
const fixed = (apiKey: number, apiName: string, apiVersion: number) => ({
  apiKey,
  apiName,
  apiVersion,
  isFlexible: false
})

const withoutThrottle = <A>(answer: A) => ({ answer, throttleMillis: 0 })

/** An answer behind the tagged fields of its header, which answers to flexible versions have (KIP-482). */
export const behindTags = (answer: Buffer): Buffer => {
  // Brokers send none.
  if (answer[0] === 0) return answer.subarray(1)
  const reader = new Reader(answer)
  reader.tags()
  return reader.rest()
}

/** An answer to ApiVersions. */
export interface ApiVersions {
  /** 0, or Kafka's code of an error. */
  readonly errorCode: number
  /** By the key of the API. */
  readonly versions: ReadonlyMap<number, VersionRange>
}

/** ApiVersions v2 (Kafka 2.0). */
export const apiVersions: Request<ApiVersions> = {
  ...fixed(18, "ApiVersions", 2),
  encode: () => new Writer().body,
  decode: (bytes) => {
    const reader = new Reader(bytes)
    const errorCode = reader.int16()
    // An older broker answers in the layout of another version.
    if (errorCode !== 0) return withoutThrottle({ errorCode, versions: new Map() })
    const ranges = reader.array(() => [reader.int16(), { min: reader.int16(), max: reader.int16() }] as const)
    return withoutThrottle({ errorCode, versions: new Map(ranges) })
  }
}

/** An answer to SaslHandshake. */
export interface SaslHandshake {
  /** 0, or Kafka's code of an error. */
  readonly errorCode: number
  /** The mechanisms that the listener takes. */
  readonly mechanisms: ReadonlyArray<string>
}

/** SaslHandshake v1 (Kafka 1.0): SaslAuthenticate follows. */
export const saslHandshake = (mechanism: string): Request<SaslHandshake> => ({
  ...fixed(17, "SaslHandshake", 1),
  encode: () => new Writer().string(mechanism).body,
  decode: (bytes) => {
    const reader = new Reader(bytes)
    return withoutThrottle({ errorCode: reader.int16(), mechanisms: reader.array(() => reader.string()) })
  }
})

/** An answer to SaslAuthenticate. */
export interface SaslAuthenticate {
  /** 0, or Kafka's code of an error. */
  readonly errorCode: number
  /** Why the broker refuses; null when it does not say, or does not refuse. */
  readonly errorMessage: string | null
  /** The broker's message of the mechanism. */
  readonly message: Buffer
  /** How long the connection stays authenticated (KIP-368), in milliseconds; 0 when the broker does not limit it. */
  readonly sessionLifetimeMillis: number
}

/** SaslAuthenticate v1 (Kafka 2.2). */
export const saslAuthenticate = (message: Buffer): Request<SaslAuthenticate> => ({
  ...fixed(36, "SaslAuthenticate", 1),
  encode: () => new Writer().bytes(message).body,
  decode: (bytes) => {
    const reader = new Reader(bytes)
    return withoutThrottle({
      errorCode: reader.int16(),
      errorMessage: reader.nullableString(),
      message: reader.bytes(),
      sessionLifetimeMillis: Number(reader.int64())
    })
  }
})
