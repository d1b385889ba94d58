/** The parts of events about the records that wait behind parked keys (`orderingMode: "PER_KEY"`). */
import type { BrokerError } from "../../BrokerError.ts"

/** A parked key. */
export interface KeyBehind {
  /** The key, as it stands in the records. */
  readonly key: Uint8Array
  /** The offset in the source that the key waits at. */
  readonly offset: bigint
}

/** The keys that records have waited behind (`orderingMode: "PER_KEY"`). */
export interface BehindKeys {
  /** The keys, 100 at most. */
  readonly behind: ReadonlyArray<KeyBehind>
  /** How many keys these are. Where the number of records is not known, the metric counts one for each. */
  readonly keys: number
}

/** A unit of order per key could not begin, and tries again: nothing of its partitions is handled meanwhile. Once for each problem. */
export interface UnitWaits {
  readonly _tag: "UnitWaits"
  /** Why, as health shows it after 15 seconds (`UnitIncomplete`). */
  readonly problem: string
}

/**
 * A retry topic was purged, or deleted, while nobody of the group read it, and the locks of parked keys went with it. The records that waited behind them in the source are passed over.
 * Once, when the source's partition begins.
 */
export interface LocksGone {
  readonly _tag: "LocksGone"
  /** The retry topics that lost records. */
  readonly topics: ReadonlyArray<string>
  /** How many keys have lost their lock: at most so many, since some may have gone on before the group stopped. */
  readonly keys: number
  /** The records that are passed over are not below this offset of the source. */
  readonly from: bigint
  /** They are below this offset, from which the source is read. */
  readonly to: bigint
}

/** The retention of a source cannot be read. */
export interface RetentionUnknown {
  readonly _tag: "RetentionUnknown"
  /** The source. */
  readonly topic: string
  /** Why its configuration cannot be read; undefined when the cluster did not answer within 5 seconds. */
  readonly error: BrokerError | undefined
}
