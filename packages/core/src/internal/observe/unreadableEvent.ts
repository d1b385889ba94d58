/** Events about batches that cannot be read (ruling 79). */
import type { HeldBatch } from "../../Snapshot.ts"

/** A record batch cannot be read, or an operator passed it. Its partition waits in front of it meanwhile; all others go on. */
export type UnreadableEvent =
  /** A record batch cannot be read. Its partition waits in front of it; the session and all other partitions go on. */
  | {
      readonly _tag: "BatchUnreadable"
      /** The batch, its problem, and what an operator can do. */
      readonly batch: HeldBatch
    }
  /** An operator passed a batch that cannot be read, and its partition goes on behind it. */
  | {
      readonly _tag: "BatchSkipped"
      /** The batch. Nobody handled offsets `offset` to `lastOffset`; `records` counts the whole of it, where that is known. */
      readonly batch: HeldBatch
      /** Why it was passed. */
      readonly reason: string
    }
