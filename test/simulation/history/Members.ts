/**
 * The broker's view of assignments: the partitions of each member of a group, and those that it has asked back.
 */
import type { Entry, PartitionName } from "./History.ts"

export interface Member {
  readonly groupId: string
  readonly memberId: string
}

/** Stands between the name of a static member and its machine. All processes run on one host here; in production the host name tells them apart. */
export const onMachine = "_on_"

export class Members {
  private readonly owned = new Map<string, Set<PartitionName>>()
  /** Time at which the broker asked a member to release a partition that the member still owns. */
  private readonly revokedAtMillis = new Map<string, number>()
  /** Processes by the static member id that they have, or had last. */
  private readonly staticOwners = new Map<string, string>()

  ownedBy({ groupId, memberId }: Member): Set<PartitionName> {
    return this.owned.get(`${groupId} ${memberId}`) ?? new Set()
  }

  /** Time since when a member has to release a partition; undefined when it need not. */
  revokedSince({ groupId, memberId }: Member, partition: PartitionName): number | undefined {
    return this.revokedAtMillis.get(`${groupId} ${memberId} ${partition}`)
  }

  /** `p1.2-7` is the seventh member of the second process on machine p1; `orders-host-0_on_p1-7` is a static member of p1. */
  processOf(memberId: string): string {
    const client = memberId.slice(0, memberId.lastIndexOf("-"))
    const at = client.lastIndexOf(onMachine)
    return at < 0 ? client : (this.staticOwners.get(client.slice(at + onMachine.length)) ?? client)
  }

  started(process: string): void {
    this.staticOwners.set(process.slice(0, process.indexOf(".")), process)
  }

  broker({ entry, atMillis }: Extract<Entry, { readonly _tag: "Broker" }>): void {
    switch (entry._tag) {
      case "Assigned": {
        const held = this.ownedBy(entry)
        this.owned.set(`${entry.groupId} ${entry.memberId}`, held)
        for (const partition of entry.partitions) held.add(partition)
        return
      }
      case "Revoked":
        for (const partition of entry.partitions) {
          this.revokedAtMillis.set(`${entry.groupId} ${entry.memberId} ${partition}`, atMillis)
        }
        return
      case "Released":
      case "Lost":
        for (const partition of entry.partitions) {
          this.ownedBy(entry).delete(partition)
          this.revokedAtMillis.delete(`${entry.groupId} ${entry.memberId} ${partition}`)
        }
        return
      case "Left":
      case "Expired":
      case "Fenced":
        this.owned.delete(`${entry.groupId} ${entry.memberId}`)
    }
  }
}
