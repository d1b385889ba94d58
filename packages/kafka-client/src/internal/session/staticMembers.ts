/** The static members of this client over its sessions: those that failed, and those that were removed because they have another name now. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Cluster } from "../connection/cluster.ts"
import { removeStaticMember } from "../group/memberRequests.ts"
import { isCoordinatorFailure } from "../wire/failures.ts"
import type { SessionSettings } from "./sessionSettings.ts"

/** Shared by all sessions of a client. */
export interface StaticMembers {
  /**
   * The member ids of static members whose session has failed, by group and name. The next session joins under the id: when another process has taken the name meanwhile,
   * the coordinator refuses the id as fenced. A session that joined without one would take the name back, and the two would fence each other for ever (ruling 81).
   */
  readonly failed: Map<string, string>
  /** Former names that were removed already, by group and name. Once in a process: whoever joins under one later is alive. */
  readonly removed: Set<string>
}

export const makeStaticMembers = (): StaticMembers => ({ failed: new Map(), removed: new Set() })

/** No group and no name has a NUL in it. */
const keyOf = (groupId: string, groupInstanceId: string): string => `${groupId}\0${groupInstanceId}`

/** The member id to join under; empty for a new member. */
export const knownMemberId = ({ failed }: StaticMembers, { groupId, groupInstanceId }: SessionSettings): string =>
  groupInstanceId === null ? "" : (failed.get(keyOf(groupId, groupInstanceId)) ?? "")

/** Remembers the member of a session that failed. `undefined` forgets it: the session was closed, or its name was lost, and whoever starts a new one wants the name. */
export const rememberMember = (
  { failed }: StaticMembers,
  { groupId, groupInstanceId, groupProtocol }: SessionSettings,
  memberId: string | undefined
): void => {
  // In the consumer protocol nobody takes a name from a member: a new session is refused while another process has it.
  if (groupInstanceId === null || groupProtocol === "consumer") return
  const key = keyOf(groupId, groupInstanceId)
  if (memberId === undefined || memberId === "") failed.delete(key)
  else failed.set(key, memberId)
}

/** Repeated for 10 seconds: a coordinator that has just come back needs a moment. */
const again = Schedule.max([Schedule.spaced("100 millis"), Schedule.recurs(100)])

/** Removes the members of former names, each once. One that cannot be removed goes by its session timeout; joining reports why. */
export const removeFormer = (
  cluster: Cluster,
  { removed }: StaticMembers,
  { groupId, replacesGroupInstanceIds }: SessionSettings
): Effect.Effect<void> =>
  Effect.forEach(
    replacesGroupInstanceIds.filter((id) => !removed.has(keyOf(groupId, id))),
    (id) =>
      removeStaticMember(cluster, groupId, id).pipe(
        Effect.retry({ schedule: again, while: ({ type }) => isCoordinatorFailure(type) }),
        Effect.tap(() => Effect.sync(() => removed.add(keyOf(groupId, id)))),
        Effect.ignore
      ),
    { discard: true }
  )
