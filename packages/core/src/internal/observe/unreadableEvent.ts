/** Events about batches that cannot be read (ruling 79). */
import type { HeldBatch } from "../../Snapshot.ts"

/** A record batch cannot be read, or an operator passed it. Its partition waits in front of it meanwhile; all others go on. */
export type UnreadableEvent =
  | {
      readonly _tag: "BatchUnreadable"
      /** The batch, its problem, and what an operator can do. */
      readonly batch: HeldBatch
    }
  | {
      readonly _tag: "BatchSkipped"
      /** The batch. Nobody handled offsets `offset` to `lastOffset`; `records` counts the whole of it, where that is known. */
      readonly batch: HeldBatch
      /** Why it was passed. */
      readonly reason: string
    }
