/** The static members of sessions that failed. The next session of the client joins as the same member, as in an adapter: it takes the name from no other process (ruling 81). */
import type { Member } from "./groupMember.ts"

/** The static member that a client keeps between two sessions. */
export interface Former {
  /** Undefined before the first session, when the last one was closed, and when it has lost its name. */
  member: Member | undefined
}

export class StaticMembers {
  private readonly known = new Map<string, Former>()

  of(groupId: string, clientId: string, groupInstanceId: string | undefined): Former {
    if (groupInstanceId === undefined) return { member: undefined }
    // No group, client or name has a NUL in it.
    const key = `${groupId}\0${clientId}\0${groupInstanceId}`
    const former = this.known.get(key) ?? { member: undefined }
    this.known.set(key, former)
    return former
  }
}
