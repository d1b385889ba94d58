/** How many records of a topic wait for a group. */
import * as Effect from "effect/Effect"
import type { Admin } from "../../Broker.ts"

/** Records of a topic behind the committed offsets of a group. Exact where the log has no holes, else an upper bound. */
export const countWaiting = Effect.fnUntraced(function* (admin: Admin, groupId: string, topic: string) {
  const committed = new Map(
    (yield* admin.committedOffsets(groupId, [topic])).map(({ partition, offset }) => [partition, offset])
  )
  const log = yield* admin.topicOffsets(topic, "read_committed")
  return log.reduce((sum, { partition, logStart, logEnd }) => {
    const position = committed.get(partition) ?? -1n
    return sum + Number(logEnd - (position < logStart ? logStart : position))
  }, 0)
})
