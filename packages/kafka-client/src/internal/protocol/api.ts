/** One API of Kafka's protocol: how its requests are written and its answers read, in the versions that this client speaks. */
import type { Body, VersionRange } from "../../Transport.ts"
import type { Reader } from "./reader.ts"

export interface Api<Payload, Answer> {
  readonly key: number
  /** Kafka's name. */
  readonly name: string
  /** The versions that `encode` and `decode` know. */
  readonly versions: VersionRange
  /** The first version whose answer comes before the time that the client is to wait (KIP-219). Older ones come after it. Default: none. */
  readonly throttledFrom?: number
  /** Which versions are flexible (KIP-482): all, or those for which this is true. Default: none. */
  readonly isFlexible?: true | ((version: number) => boolean)
  /** How long the node may hold the answer, in milliseconds. Default: not at all. */
  readonly heldMillis?: (payload: Payload) => number
  readonly encode: (payload: Payload, version: number) => Body
  readonly decode: (answer: Reader, version: number) => Answer
}

/** A range of one version. */
export const only = (version: number): VersionRange => ({ min: version, max: version })
