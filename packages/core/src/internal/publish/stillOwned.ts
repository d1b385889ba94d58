/**
 * Asks whether a partition is still ours before a copy of its record is published. A process that was suspended for longer than its session wakes with partitions
 * that others have by now, and its timers and handlers go on before the group can tell it so.
 */
import * as Effect from "effect/Effect"
import type { CopySource } from "../record/copy.ts"

/** Between two looks at the session. */
const lookMillis = 50

/** Waits while the session is unconfirmed. True when the partition is ours and may publish, false when that is over. */
export const confirmed = (partition: CopySource): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    if (!partition.mayPublish()) return Effect.succeed(false)
    return partition.isUnconfirmed()
      ? Effect.andThen(Effect.sleep(lookMillis), confirmed(partition))
      : Effect.succeed(true)
  })
