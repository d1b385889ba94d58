/** Polls the metadata of the topics that a session reads: in the classic protocol the members notice new topics and partitions, and topics that were made again, themselves. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { failureOfCode } from "../wire/failures.ts"
import { lookUpTopicIds } from "./assignmentEvents.ts"
import type { SessionState } from "./sessionState.ts"

/** Poll interval while a topic does not exist. */
const missingTopicInterval = Duration.seconds(1)

/** Least time between two polls. */
const shortestInterval = Duration.millis(200)

/** Errors of a topic that waiting for it does not cure. */
const fatalTopicErrors = new Set(["TOPIC_AUTHORIZATION_FAILED", "INVALID_TOPIC_EXCEPTION"])

/** The number of partitions of each topic. Ends the session when waiting cannot help. */
const countPartitions = Effect.fnUntraced(function* (session: SessionState) {
  const { fetcher, failSession } = session
  const metadata = yield* fetcher.refresh
  yield* lookUpTopicIds(session)
  for (const { topic, topicErrorCode } of metadata.values()) {
    const failed = failureOfCode(topicErrorCode)
    if (failed !== undefined && fatalTopicErrors.has(failed.type)) yield* failSession(failed, topic)
  }
  return new Map([...metadata].map(([topic, found]) => [topic, found.partitionMetadata.length]))
})

/** Joins the group again when topics appear or get more partitions. `intervalMillis` is the poll interval while all topics exist. */
export const pollTopics = (session: SessionState, intervalMillis: number): Effect.Effect<never> => {
  const { settings, membership, pollNow } = session
  const poll = Effect.orElseSucceed(countPartitions(session), () => session.partitionCounts)
  return Effect.gen(function* () {
    session.partitionCounts = yield* poll
    while (true) {
      const missing = settings.topics.some((topic) => !session.partitionCounts.get(topic))
      yield* Effect.raceFirst(Effect.sleep(missing ? missingTopicInterval : intervalMillis), pollNow.await)
      pollNow.closeUnsafe()
      yield* Effect.sleep(shortestInterval)
      const counts = yield* poll
      const changed = settings.topics.some((topic) => counts.get(topic) !== session.partitionCounts.get(topic))
      if (changed) membership.requestRejoin()
      session.partitionCounts = counts
    }
  })
}
