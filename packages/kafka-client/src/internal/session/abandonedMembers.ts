/** Members that could not leave their group. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { isLocal } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { Leave } from "../group/membership.ts"
import { isCoordinatorFailure } from "../wire/failures.ts"

/**
 * How members leave, by group and member id, of sessions that ended while no broker could be reached or accepted them. Such a member would hold its partitions for a whole
 * session timeout after a broker is back, so the next session of the group removes it.
 */
export type AbandonedMembers = Map<string, Map<string, Leave>>

const retryDelay = "100 millis"
const leaveTimeout = "2 seconds"

/** Repeated for 10 seconds: a coordinator that has just come back needs a moment. */
const removeMember = (cluster: Cluster, leave: Leave) =>
  Effect.retry(leave(cluster), {
    schedule: Schedule.max([Schedule.spaced(retryDelay), Schedule.recurs(100)]),
    while: ({ type }) => isCoordinatorFailure(type)
  })

const membersOf = (abandoned: AbandonedMembers, groupId: string): Map<string, Leave> => {
  const members = abandoned.get(groupId) ?? new Map()
  abandoned.set(groupId, members)
  return members
}

/** Leaves the group. A member that cannot leave within two seconds is remembered in `abandoned`. */
export const leaveOrRemember = (
  cluster: Cluster,
  abandoned: AbandonedMembers,
  { groupId, memberId, leave }: { readonly groupId: string; readonly memberId: string; readonly leave: Leave }
) => {
  const remember = Effect.sync(() => {
    membersOf(abandoned, groupId).set(memberId, leave)
  })
  return leave(cluster).pipe(
    Effect.catch(({ type }) => (isCoordinatorFailure(type) || isLocal(type) ? remember : Effect.void)),
    // This runs in a finalizer, which is uninterruptible, and a timeout waits for what it cannot interrupt.
    Effect.interruptible,
    Effect.timeoutOrElse({ duration: leaveTimeout, orElse: () => remember })
  )
}

/** Removes the abandoned members of a group. A member that still cannot be removed is kept for the next session. */
export const removeAbandoned = (cluster: Cluster, abandoned: AbandonedMembers, groupId: string) =>
  Effect.suspend(() => {
    const members = membersOf(abandoned, groupId)
    return Effect.forEach(
      [...members],
      ([memberId, leave]) =>
        removeMember(cluster, leave).pipe(
          Effect.match({ onSuccess: () => true, onFailure: ({ type }) => !isLocal(type) }),
          Effect.tap((answered) => Effect.sync(() => answered && members.delete(memberId)))
        ),
      { discard: true }
    )
  })
