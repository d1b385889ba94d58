/** An assigned partition without a session: its log ends at `logEnd`. */
import { Effect } from "effect"
import * as Histogram from "../src/internal/observe/histogram.ts"
import * as Partition from "../src/internal/partition/partition.ts"

export const onePartition = (logEnd: bigint) =>
  Partition.make({
    topic: "orders",
    partition: 0,
    generation: 1,
    position: 0n,
    committed: -1n,
    logEnd,
    tier: undefined,
    counters: { processed: 0, notHandled: 0, retries: Histogram.make([]) },
    highWater: () => ({ records: 10, bytes: 10 }),
    session: { pause: () => Effect.void, resume: () => Effect.void, isUnconfirmed: () => false },
    onGuarded: () => {},
    onFetchPaused: () => {},
    onFetchResumed: () => {}
  })
