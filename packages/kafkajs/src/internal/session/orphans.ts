/** Members that could not leave their group. */
import { Effect, Schedule } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import { leave } from "../group/membership.ts"
import { isCoordinatorFailure, isLocal } from "../wire/errors.ts"

/**
 * Members of sessions that ended while no broker could be reached, or let them in, by group. They would hold their partitions for a whole session
 * timeout once a broker is back, so the next session of the group takes them out.
 */
export type Orphans = Map<string, Set<string>>

const retryDelay = "100 millis"
const leaveTimeout = "2 seconds"

/** A coordinator that has just come back needs a moment. */
const removeOrphan = (cluster: Cluster, groupId: string, memberId: string) =>
  Effect.retry(leave(cluster, groupId, memberId), {
    schedule: Schedule.max([Schedule.spaced(retryDelay), Schedule.recurs(100)]),
    while: ({ type }) => isCoordinatorFailure(type)
  })

const orphansOf = (orphans: Orphans, groupId: string): Set<string> => {
  const members = orphans.get(groupId) ?? new Set()
  orphans.set(groupId, members)
  return members
}

/** Leaves, or remembers that it could not. */
export const leaveOrRemember = (cluster: Cluster, orphans: Orphans, groupId: string, memberId: string) => {
  const unreachable = Effect.sync(() => {
    orphansOf(orphans, groupId).add(memberId)
  })
  return leave(cluster, groupId, memberId).pipe(
    Effect.catch(({ type }) => (isCoordinatorFailure(type) || isLocal(type) ? unreachable : Effect.void)),
    // runs in a finalizer, which is uninterruptible, and a timeout waits for what it cannot interrupt
    Effect.interruptible,
    Effect.timeoutOrElse({ duration: leaveTimeout, orElse: () => unreachable })
  )
}

/** Takes the members out that could not leave before; who still cannot is kept for the next session. */
export const removeOrphans = (cluster: Cluster, orphans: Orphans, groupId: string) =>
  Effect.suspend(() => {
    const waiting = orphansOf(orphans, groupId)
    return Effect.forEach(
      [...waiting],
      (memberId) =>
        removeOrphan(cluster, groupId, memberId).pipe(
          Effect.match({ onSuccess: () => true, onFailure: ({ type }) => !isLocal(type) }),
          Effect.tap((settled) => Effect.sync(() => settled && waiting.delete(memberId)))
        ),
      { discard: true }
    )
  })
