/** One fetch from one node: by the ids of the topics and in a session where both have them, and by names otherwise. */
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { IsolationLevel } from "../offsets/logOffsets.ts"
import type { FetchedPartition } from "../protocol/apis.ts"
import { codecs } from "../protocol/codecs.ts"
import { check, failureOfCode } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import { fetchByIdRequest, fetchRequest } from "./fetchRequest.ts"
import type { FetchedFrom, FetchSession } from "./fetchSession.ts"

type Answers = ReadonlyArray<FetchedPartition>

/** The node has given up the session, or has another state of it. */
const sessionFailures = new Set([
  "FETCH_SESSION_ID_NOT_FOUND",
  "INVALID_FETCH_SESSION_EPOCH",
  "FETCH_SESSION_TOPIC_ID_ERROR"
])

/** Fetches in a session. One that the node does not know is begun again at once. */
const inSession = (
  broker: NodeClient,
  session: FetchSession,
  isolation: IsolationLevel,
  positions: ReadonlyArray<FetchedFrom>,
  waitMillis: number
): Effect.Effect<Answers, ClientFailure> =>
  Effect.suspend(() => {
    const { isIncremental } = session
    const payload = fetchByIdRequest(isolation, session.next(positions), waitMillis)
    // After a request without an answer nobody knows what the node has of the session.
    const asked = Effect.onError(call(broker, "FetchById", payload), () => Effect.sync(() => session.restart()))
    return Effect.flatMap(asked, ({ errorCode, sessionId, partitions }): Effect.Effect<Answers, ClientFailure> => {
      const failed = failureOfCode(errorCode)
      if (failed === undefined) {
        session.answered(sessionId)
        return Effect.succeed(partitions)
      }
      if (failed.type === "FETCH_SESSION_ID_NOT_FOUND") session.forget()
      else session.restart()
      return isIncremental && sessionFailures.has(failed.type)
        ? inSession(broker, session, isolation, positions, waitMillis)
        : Effect.fail(failed)
    })
  })

const byName = Effect.fnUntraced(function* (
  broker: NodeClient,
  isolation: IsolationLevel,
  positions: ReadonlyArray<FetchedFrom>,
  waitMillis: number
) {
  const answer = yield* call(broker, "Fetch", fetchRequest(isolation, positions, waitMillis))
  yield* check(answer.errorCode)
  return answer.partitions
})

/**
 * Fetches from these positions. `topicIds`: the ids of the topics that the positions are of. In a session the answer leaves out partitions with nothing new. `waitMillis`: how long
 * the node may hold the answer while there are no data.
 */
export const fetchFrom = (
  broker: NodeClient,
  session: FetchSession,
  topicIds: ReadonlyMap<string, string>,
  isolation: IsolationLevel,
  positions: ReadonlyArray<FetchedFrom>,
  waitMillis: number
): Effect.Effect<Answers, ClientFailure> => {
  const { key, versions } = codecs.FetchById
  const names = new Map<string, string>()
  const byId = positions.flatMap((position) => {
    const id = topicIds.get(position.topic)
    if (id === undefined) return []
    names.set(id, position.topic)
    return [{ ...position, topic: id }]
  })
  if (byId.length < positions.length || (broker.versionsOf(key)?.max ?? 0) < versions.min)
    return byName(broker, isolation, positions, waitMillis)
  return Effect.map(inSession(broker, session, isolation, byId, waitMillis), (answers) =>
    answers.map((answer) => ({ ...answer, topic: names.get(answer.topic) ?? answer.topic }))
  )
}
