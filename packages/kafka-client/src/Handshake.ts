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
  /** The versions of the features that the cluster has agreed on (KIP-584), by name. */
  readonly features: ReadonlyMap<string, number>
}

/** The name and the version of a client, which brokers show in their metrics and request logs (KIP-511). Of letters, digits, `.` and `-`, with a letter or a digit at both ends. */
export interface Software {
  /** Kafka: `client_software_name`. */
  readonly name: string
  /** Kafka: `client_software_version`. */
  readonly version: string
}

/** An older broker answers with an error in the layout of another version, of which only the error code is read. */
const readVersions = (
  bytes: Buffer,
  ranges: (reader: Reader) => ReadonlyArray<readonly [number, VersionRange]>,
  features: (reader: Reader) => ApiVersions["features"]
): ApiVersions => {
  const reader = new Reader(bytes)
  const errorCode = reader.int16()
  if (errorCode !== 0) return { errorCode, versions: new Map(), features: new Map() }
  return { errorCode, versions: new Map(ranges(reader)), features: features(reader) }
}

const readRange = (reader: Reader): readonly [number, VersionRange] => [
  reader.int16(),
  { min: reader.int16(), max: reader.int16() }
]

/** The tag of the features, and that of their epoch, which is negative while a node does not know them. */
const tag = { epoch: 1, features: 2 }

/** Reads the features, which follow the versions in v3. */
const readFeatures = (reader: Reader): ApiVersions["features"] => {
  reader.throttle()
  const fields = reader.taggedFields()
  const [epoch, features] = [fields.get(tag.epoch), fields.get(tag.features)]
  if (epoch === undefined || features === undefined || epoch.int64() < 0n) return new Map()
  return new Map(
    features.compactArray(() => {
      const feature = [features.compactString(), features.int16()] as const
      // Its oldest version.
      features.int16()
      features.tags()
      return feature
    })
  )
}

/**
 * ApiVersions v3 (Kafka 2.4), which names the client. A node that does not speak it answers the error `UNSUPPORTED_VERSION`, and goes on with the connection.
 *
 * The version is flexible, and the header of its answer has no tagged fields all the same, because a node may answer in another version. So those of the request's header stand in
 * its body.
 */
export const apiVersions = ({ name, version }: Software): Request<ApiVersions> => ({
  ...fixed(18, "ApiVersions", 3),
  encode: () => new Writer().noTags().compactString(name).compactString(version).noTags().body,
  decode: (bytes) =>
    withoutThrottle(
      readVersions(
        bytes,
        (reader) =>
          reader.compactArray(() => {
            const range = readRange(reader)
            reader.tags()
            return range
          }),
        readFeatures
      )
    )
})

/** ApiVersions v0 (Kafka 0.10), which every node speaks. */
export const oldestApiVersions: Request<ApiVersions> = {
  ...fixed(18, "ApiVersions", 0),
  encode: () => new Writer().body,
  decode: (bytes) =>
    withoutThrottle(
      readVersions(
        bytes,
        (reader) => reader.array(() => readRange(reader)),
        () => new Map()
      )
    )
}

/** Kafka's code of `UNSUPPORTED_VERSION`. */
export const unsupportedVersion = 35

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
