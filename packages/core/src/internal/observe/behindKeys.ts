/** The parked keys that an event is about. */

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
