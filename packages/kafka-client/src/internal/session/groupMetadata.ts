/** The member of a session as transactions name it, so that the group fences a zombie (KIP-447). */
import { type Broker, BrokerError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { staleKeys } from "../group/commits.ts"
import type { SessionState } from "./sessionState.ts"

/** How often it is looked whether the member has another generation, after the coordinator has refused one. */
const lookInterval = "10 millis"

export const makeGroupMetadata = ({
  membership,
  ownership,
  settings
}: Pick<SessionState, "membership" | "ownership" | "settings">): Broker.ConsumerSession["groupMetadata"] => {
  const { groupId, groupInstanceId, rebalanceTimeoutMillis } = settings

  const current = (): Broker.ConsumerGroupMetadata | undefined => {
    const identity = membership.identity()
    if (identity === undefined) return undefined
    const { memberId, generation: generationId } = identity
    return { groupId, generationId, memberId, groupInstanceId: groupInstanceId ?? undefined }
  }

  const other = (
    assignments: ReadonlyArray<Broker.Assignment>,
    refused: Broker.ConsumerGroupMetadata | undefined
  ): Effect.Effect<Broker.ConsumerGroupMetadata, BrokerError.BrokerError> =>
    Effect.suspend(() => {
      const partitions = staleKeys(ownership, assignments)
      if (partitions.length > 0) return Effect.fail(new BrokerError.StaleAssignment({ groupId, partitions }))
      const found = current()
      const isRefused = found?.generationId === refused?.generationId && found?.memberId === refused?.memberId
      return found === undefined || isRefused
        ? Effect.delay(other(assignments, refused), lookInterval)
        : Effect.succeed(found)
    })

  return (assignments, refused) =>
    Effect.suspend(() => {
      // A coordinator that knows a newer generation, or no such member, says so to the next heartbeat too.
      if (refused !== undefined) membership.heartbeatNow()
      return Effect.timeoutOrElse(other(assignments, refused), {
        duration: rebalanceTimeoutMillis,
        orElse: () => Effect.fail(new BrokerError.RebalanceInProgress({ groupId }))
      })
    })
}
