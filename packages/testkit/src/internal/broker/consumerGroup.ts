/**
 * The coordinator of one group. It owns members, generations and the ownership of partitions.
 *
 * A rebalance computes a target assignment and then moves each partition separately: the owner is asked to release it, and the partition becomes free
 * for the target member when the owner has released it or the rebalance timeout is over. Partitions that go together become free together.
 */
import { Adapter, type Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import { CommittedOffsets } from "./committedOffsets.ts"
import {
  candidatesOf,
  holdersOf,
  type JoinRequest,
  type Member,
  type OwnedPartition,
  sameSubscription
} from "./groupMember.ts"
import type { Kernel } from "./kernel.ts"

type TopicPartition = ConsumerRecord.TopicPartition

interface Coordinator {
  /** True while heartbeats cannot arrive, so that members do not expire. */
  readonly isUnreachable: () => boolean
}

export class ConsumerGroup {
  readonly groupId: string
  generation = 0
  readonly members = new Map<string, Member>()
  readonly offsets: CommittedOffsets
  private target: ReadonlyMap<string, string> = new Map()
  private joins = 0
  private readonly replaced = new Set<string>()
  private readonly kernel: Kernel
  private readonly coordinator: Coordinator

  constructor(groupId: string, kernel: Kernel, coordinator: Coordinator) {
    this.groupId = groupId
    this.kernel = kernel
    this.offsets = new CommittedOffsets(groupId, kernel)
    this.coordinator = coordinator
  }

  get state(): Broker.GroupDescription["state"] {
    if (this.members.size === 0) return "Empty"
    return this.moving() ? "PreparingRebalance" : "Stable"
  }

  /** The assignment protocol that most members prefer among those that all list; empty without members. */
  get protocol(): string {
    const lists = [...this.members.values()].map(({ strategies }) => strategies)
    const votes = Map.groupBy(lists, (list) => list.find((name) => lists.every((each) => each.includes(name))))
    const [winner] = [...votes].sort(([, a], [, b]) => b.length - a.length)
    return winner?.[0] ?? ""
  }

  /** Why a member with these assignment protocols may not join: another one lists none of them. */
  refusal(strategies: JoinRequest["strategies"]): BrokerError.BrokerError | undefined {
    const lists = [strategies, ...[...this.members.values()].map((member) => member.strategies)]
    if (strategies.some((name) => lists.every((list) => list.includes(name)))) return undefined
    const { groupId, state, protocol } = this
    const members = [...this.members.values()].map(({ memberId, groupInstanceId, clientId }) => ({
      ...{ memberId, groupInstanceId, clientId },
      assignment: []
    }))
    return new BrokerError.UnexpectedBrokerError({
      ...{ operation: "consume", code: "INCONSISTENT_GROUP_PROTOCOL", retryable: false },
      detail: Adapter.refusalOf(strategies, { groupId, type: "classic", state, protocol, members })
    })
  }

  /** Why the session of this member may not join again: another one has its name. */
  fencing(member: Member): BrokerError.InstanceFenced | undefined {
    const { groupInstanceId, memberId, state } = member
    if (groupInstanceId === undefined || memberId === "") return undefined
    const holder = this.staticMember(groupInstanceId)
    const isFenced = state === "fenced" || (holder !== undefined && holder !== member)
    return isFenced ? new BrokerError.InstanceFenced({ groupId: this.groupId, groupInstanceId }) : undefined
  }

  /** Stands in place of the member until a session joins for the first time. */
  outsider(request: JoinRequest): Member {
    return {
      ...request,
      ...{ memberId: "", state: "left", owned: new Map(), cancelExpiry: () => {} },
      lastSeenMillis: this.kernel.nowMillis()
    }
  }

  join(request: JoinRequest): Member {
    const before = this.staticMember(request.groupInstanceId)
    const member: Member = {
      ...this.outsider(request),
      memberId: `${request.groupInstanceId ?? request.clientId}-${++this.joins}`,
      state: "joined",
      // A partition that the previous member was releasing is free now: nobody else could release it any more.
      owned: new Map([...(before?.owned ?? [])].filter(([, { phase }]) => phase === "owned"))
    }
    if (before) this.fence(before)
    this.members.set(member.memberId, member)
    this.watchExpiry(member)
    this.kernel.journal({ _tag: "Joined", groupId: this.groupId, memberId: member.memberId })
    // A static member that rejoins with the same subscription takes its partitions back without a rebalance (KIP-345).
    const asItWas = before && sameSubscription(before, member) && !this.moving()
    if (before && asItWas) {
      this.target = new Map([...this.target].map(([key, id]) => [key, id === before.memberId ? member.memberId : id]))
      this.settle()
    } else {
      this.rebalance()
    }
    return member
  }

  /** Removes the static members of former names, once for each name that replaces them. One that lives learns it at its next heartbeat. */
  replaceFormer(groupInstanceId: string | undefined, former: ReadonlyArray<string>): void {
    for (const id of former) {
      const replacement = `${groupInstanceId}/${id}`
      if (this.replaced.has(replacement)) continue
      this.replaced.add(replacement)
      const member = this.staticMember(id)
      if (member) this.expire(member)
    }
  }

  heartbeat(member: Member): void {
    member.lastSeenMillis = this.kernel.nowMillis()
  }

  leave(member: Member): void {
    if (this.drop(member, "left")) this.rebalance()
  }

  /** Removes a member after its session timeout. The member learns it at its next heartbeat. */
  expire(member: Member): void {
    if (this.drop(member, "expired")) this.rebalance()
  }

  /** Takes a partition from its owner without a revocation. */
  lose(key: string): void {
    for (const member of this.members.values()) {
      if (!member.owned.delete(key)) continue
      member.notify()
      this.rebalance()
    }
  }

  /** The member releases partitions that it was asked for. */
  release(member: Member, keys: ReadonlyArray<string>): void {
    const released = keys.filter((key) => member.owned.get(key)?.phase === "revoking")
    for (const key of released) member.owned.delete(key)
    if (released.length === 0) return
    this.kernel.journal({
      _tag: "Released",
      groupId: this.groupId,
      memberId: member.memberId,
      generation: this.generation,
      partitions: released
    })
    this.settle()
  }

  /** Accepts all entries or none. `StaleAssignment` names the entries whose assignment has ended. */
  commit(member: Member, entries: ReadonlyArray<Broker.OffsetCommit>): BrokerError.BrokerError | undefined {
    const stale = entries
      .map((entry) => ({ key: ConsumerRecord.partitionKey(entry.topic, entry.partition), entry }))
      .filter(({ key, entry }) => member.state !== "joined" || member.owned.get(key)?.generation !== entry.generation)
    if (stale.length > 0) {
      return new BrokerError.StaleAssignment({ groupId: this.groupId, partitions: stale.map(({ key }) => key) })
    }
    const unknown = entries.find(({ topic, partition }) => !this.kernel.topics.log(topic, partition))
    if (unknown) return new BrokerError.UnknownTopic({ topic: unknown.topic, partition: unknown.partition })
    for (const entry of entries) {
      this.offsets.record({ ...entry, memberId: member.memberId, metadata: entry.metadata ?? "" })
    }
    return undefined
  }

  /** Why a member may not commit offsets in a transaction (KIP-447). */
  refusalOfMember(
    { memberId, generationId, groupInstanceId }: Broker.ConsumerGroupMetadata,
    offsets: ReadonlyArray<TopicPartition>
  ): BrokerError.BrokerError | undefined {
    const { groupId } = this
    if (this.members.has(memberId))
      return generationId === this.generation ? undefined : new BrokerError.RebalanceInProgress({ groupId })
    if (groupInstanceId !== undefined && this.staticMember(groupInstanceId) !== undefined)
      return new BrokerError.InstanceFenced({ groupId, groupInstanceId })
    const partitions = offsets.map(({ topic, partition }) => ConsumerRecord.partitionKey(topic, partition))
    return new BrokerError.StaleAssignment({ groupId, partitions })
  }

  /** Begins a new generation: computes the target assignment and starts to move partitions. */
  rebalance(): void {
    this.generation++
    this.target = Adapter.assign(this.candidates(), this.subscribed())
    const revocations = [...this.members.values()].map((member) => ({
      member,
      leaving: [...member.owned].filter(
        ([key, holding]) =>
          holding.phase === "owned" && (this.isEager(member) || this.target.get(key) !== member.memberId)
      )
    }))
    for (const { leaving } of revocations) for (const [, holding] of leaving) holding.phase = "revoking"
    for (const { member, leaving } of revocations) if (leaving.length > 0) this.revoke(member, leaving)
    this.settle()
  }

  /** Assigns free partitions: where members are eager when they have given up all, otherwise each as soon as it is free. */
  private settle(): void {
    if (this.moving((member) => this.isEager(member))) return
    const holders = holdersOf([...this.members.values()])
    const grown = new Set<Member>()
    for (const at of Adapter.grantable(this.candidates(), this.subscribed(), this.target, holders)) {
      const key = ConsumerRecord.partitionKey(at.topic, at.partition)
      const member = holders.has(key) ? undefined : this.members.get(this.target.get(key) ?? "")
      if (!member) continue
      member.owned.set(key, { ...at, generation: this.generation, phase: "owned" })
      grown.add(member)
    }
    for (const member of grown) member.notify()
  }

  private candidates(): ReadonlyArray<Adapter.Candidate> {
    return candidatesOf([...this.members.values()], this.protocol)
  }

  private revoke(member: Member, leaving: ReadonlyArray<[string, OwnedPartition]>): void {
    member.notify()
    if (leaving.every(([key, holding]) => member.owned.get(key) !== holding)) return
    this.kernel.after(member.rebalanceTimeoutMillis, () => {
      const overdue = leaving.filter(([key, holding]) => member.owned.get(key) === holding)
      if (overdue.length === 0) return
      for (const [key] of overdue) member.owned.delete(key)
      member.notify()
      this.settle()
    })
  }

  private isEager({ strategies }: Member): boolean {
    return this.kernel.settings.assignment === "eager" || Adapter.isEager(strategies)
  }

  private moving(which: (member: Member) => boolean = () => true): boolean {
    for (const member of this.members.values()) {
      if (!which(member)) continue
      for (const ownedPartition of member.owned.values()) if (ownedPartition.phase === "revoking") return true
    }
    return false
  }

  private subscribed(): ReadonlyArray<TopicPartition> {
    const topics = new Set([...this.members.values()].flatMap((member) => [...member.topics]))
    return [...topics]
      .sort()
      .flatMap((topic) =>
        Array.from({ length: this.kernel.topics.partitionCount(topic) }, (_, partition) => ({ topic, partition }))
      )
  }

  private staticMember(groupInstanceId: string | undefined): Member | undefined {
    if (groupInstanceId === undefined) return undefined
    return [...this.members.values()].find((member) => member.groupInstanceId === groupInstanceId)
  }

  /** Removes the older of two members with one `group.instance.id`. */
  private fence(before: Member): void {
    this.members.delete(before.memberId)
    before.cancelExpiry()
    before.state = "fenced"
    this.kernel.journal({ _tag: "Fenced", groupId: this.groupId, memberId: before.memberId })
    before.notify()
  }

  private drop(member: Member, state: "left" | "expired"): boolean {
    if (!this.members.delete(member.memberId)) return false
    member.state = state
    member.owned.clear()
    member.cancelExpiry()
    const _tag = state === "left" ? "Left" : "Expired"
    this.kernel.journal({ _tag, groupId: this.groupId, memberId: member.memberId })
    return true
  }

  private watchExpiry(member: Member): void {
    const silentMillis = this.kernel.nowMillis() - member.lastSeenMillis
    member.cancelExpiry = this.kernel.after(member.sessionTimeoutMillis - silentMillis, () => {
      if (this.coordinator.isUnreachable()) this.heartbeat(member)
      if (this.kernel.nowMillis() - member.lastSeenMillis >= member.sessionTimeoutMillis) this.expire(member)
      else this.watchExpiry(member)
    })
  }
}
