/**
 * The client side of a group member: the partitions that it owns, their positions, and its events. It owns the cursors.
 *
 * `sync` alone reads the coordinator's state and turns the difference into events.
 */
import { type Broker, type BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { ConsumerGroup } from "./consumerGroup.ts"
import { type Cursor, type FetchLimits, fetch, readable } from "./cursor.ts"
import type { EventBuffer } from "./eventBuffer.ts"
import type { JoinRequest, Member, OwnedPartition } from "./groupMember.ts"
import type { Kernel } from "./kernel.ts"
import type { PartitionLog } from "./partitionLog.ts"
import type { Former } from "./staticMembers.ts"

type TopicPartition = ConsumerRecord.TopicPartition

/** The parts that a session works with. */
interface SessionParts {
  readonly kernel: Kernel
  readonly group: ConsumerGroup
  readonly buffer: EventBuffer
  readonly limits: FetchLimits
  /** True while the broker can be reached. */
  readonly reaches: () => boolean
  /** Asked before the session joins as a new member. */
  readonly mayJoin: () => boolean
  readonly former: Former
}

export class Session {
  private readonly parts: SessionParts
  private readonly request: JoinRequest
  private membership: Member
  private readonly cursors = new Map<string, Cursor>()
  private readonly wakeUp = Latch.makeUnsafe()
  private phase: "joining" | "open" | "ended" = "open"
  /** When the last heartbeat that was answered was sent, or the group was joined. */
  confirmedMillis: number
  /** The group's generation, as the client knows it. */
  generation = 0
  /** True once the client knows that it is a member. */
  private hasJoined = false
  /** Index of the cursor that is fetched next. */
  private nextCursorIndex = 0

  constructor(parts: SessionParts, request: Omit<JoinRequest, "notify">) {
    this.parts = parts
    this.request = { ...request, notify: () => this.sync() }
    this.membership = parts.former.member ?? parts.group.outsider(this.request)
    this.confirmedMillis = parts.kernel.nowMillis()
    this.join()
    this.sync()
  }

  get open(): boolean {
    return this.phase !== "ended"
  }

  get member(): Member {
    return this.membership
  }

  readonly wake = (): void => {
    this.wakeUp.openUnsafe()
  }

  /** Reads the coordinator's state, if it can be reached, and reports what changed. */
  sync(): void {
    if (this.phase !== "open" || !this.parts.reaches()) return
    if (this.member.state === "joined") {
      this.generation = this.parts.group.generation
      this.reportLost()
      this.reportRevoked()
      this.reportAssigned()
    } else {
      this.join()
    }
    this.wake()
  }

  /** The client fails: its partitions are lost, then its events end with the error. */
  die(error: BrokerError.BrokerError): void {
    if (this.phase === "ended") return
    this.lose([...this.cursors.values()])
    this.parts.buffer.failWith(error)
    this.parts.former.member = error._tag === "InstanceFenced" ? undefined : this.member
    this.phase = "ended"
    this.wake()
  }

  /** Ends the session without an event. */
  close(): void {
    if (this.open) this.parts.former.member = undefined
    this.phase = "ended"
    for (const cursor of this.cursors.values()) this.unwatch(cursor)
    this.cursors.clear()
    this.wake()
  }

  /** Watches the partitions of a topic again, since a new topic has new partition objects. */
  readonly rewatch = (topic: string): void => {
    for (const cursor of this.cursors.values()) if (cursor.topic === topic) this.watch(cursor)
    this.wake()
  }

  pause(partitions: ReadonlyArray<TopicPartition>): void {
    for (const cursor of this.held(partitions)) cursor.paused = true
  }

  resume(partitions: ReadonlyArray<TopicPartition>): void {
    for (const cursor of this.held(partitions)) cursor.paused = false
    this.wake()
  }

  seek(at: TopicPartition, offset: bigint): void {
    for (const cursor of this.held([at])) {
      // Removing events makes room, so the fetch loop may fetch at once. It must not fetch from the old position, nor from the new one yet.
      cursor.position = undefined
      this.parts.buffer.forgetFetches(cursor)
      cursor.position = offset
    }
    this.wake()
  }

  /** Keys of the entries whose assignment has ended as far as this session knows. */
  stale(entries: ReadonlyArray<Broker.Assignment>): ReadonlyArray<string> {
    return entries
      .filter((entry) => {
        const cursor = this.cursors.get(keyOf(entry))
        return cursor?.generation !== entry.generation || cursor.phase === "released"
      })
      .map(keyOf)
  }

  /** The fetch loop: passes on events and chunks while the session lives. It waits without a timer when there is nothing to do. */
  readonly pump = (paceMillis: (topic: string) => number): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      const { buffer } = this.parts
      while (true) {
        this.wakeUp.closeUnsafe()
        yield* buffer.flush
        if (this.phase === "ended") return
        const cursor = this.nextReadable()
        if (!cursor) {
          yield* this.wakeUp.await
          continue
        }
        const millis = paceMillis(cursor.topic)
        if (millis > 0) yield* Effect.sleep(millis)
        // Events that were emitted during the fetch come before it.
        const fetched = this.fetch(cursor)
        if (fetched !== undefined) buffer.emit(fetched)
      }
    })

  /** The cursors of those partitions that this session knows. */
  private held(partitions: ReadonlyArray<TopicPartition>): ReadonlyArray<Cursor> {
    return partitions.flatMap((at) => this.cursors.get(keyOf(at)) ?? [])
  }

  /** Joins as a new member, where the session may. */
  private join(): void {
    const { group, mayJoin } = this.parts
    const refusal = group.fencing(this.member) ?? group.refusal(this.request.strategies)
    if (refusal) {
      this.die(refusal)
      return
    }
    this.lose([...this.cursors.values()])
    if (!mayJoin()) return
    this.phase = "joining"
    this.membership = group.join(this.request)
    this.phase = "open"
    this.sync()
  }

  private reportLost(): void {
    const { owned } = this.member
    const gone = [...this.cursors].filter(([key, { generation }]) => owned.get(key)?.generation !== generation)
    this.lose(gone.map(([, cursor]) => cursor))
  }

  private lose(gone: ReadonlyArray<Cursor>): void {
    for (const cursor of gone) this.removeCursor(cursor)
    for (const [generation, cursors] of byGeneration(gone.filter((cursor) => cursor.phase !== "released"))) {
      this.parts.buffer.emit({ _tag: "Lost", generation, partitions: cursors.map(coordinates) })
      this.report("Lost", generation, cursors)
    }
  }

  private reportRevoked(): void {
    const leaving: Array<Cursor> = []
    for (const [key, holding] of this.member.owned) {
      const cursor = this.cursors.get(key)
      if (holding.phase !== "revoking" || !cursor) continue
      if (cursor.phase === "owned") leaving.push(cursor)
      // A release that did not reach the coordinator is repeated.
      else if (cursor.phase === "released") this.release([cursor])
    }
    for (const [generation, cursors] of byGeneration(leaving)) {
      for (const cursor of cursors) cursor.phase = "revoking"
      const release = Effect.sync(() => this.release(cursors))
      this.parts.buffer.emit({ _tag: "Revoked", generation, partitions: cursors.map(coordinates), release })
      this.report("Revoked", generation, cursors)
    }
  }

  private release(cursors: ReadonlyArray<Cursor>): void {
    const mine = cursors.filter((cursor) => this.cursors.get(keyOf(cursor)) === cursor)
    for (const cursor of mine) cursor.phase = "released"
    if (mine.length === 0 || !this.parts.reaches()) return
    for (const cursor of mine) this.removeCursor(cursor)
    this.parts.group.release(this.member, mine.map(keyOf))
  }

  private reportAssigned(): void {
    const fresh = [...this.member.owned].filter(([key, holding]) => holding.phase === "owned" && !this.cursors.has(key))
    for (const [generation, holdings] of byGeneration(fresh.map(([, holding]) => holding))) {
      const partitions = holdings.map((ownedPartition) => this.addCursor(ownedPartition))
      const commits = this.parts.group.offsets.ofTopics(new Set(partitions.map(({ topic }) => topic)))
      this.parts.buffer.emit({ _tag: "Assigned", generation, partitions, commits })
      this.report("Assigned", generation, partitions)
    }
    if (!this.hasJoined && fresh.length === 0)
      this.parts.buffer.emit({ _tag: "Assigned", generation: this.parts.group.generation, partitions: [], commits: [] })
    this.hasJoined = true
  }

  private addCursor({ topic, partition, generation }: OwnedPartition): Broker.AssignedPartition {
    const cursor: Cursor = { topic, partition, generation, position: undefined, paused: false, phase: "owned" }
    this.cursors.set(keyOf(cursor), cursor)
    this.watch(cursor)
    const log = this.log(cursor)
    return {
      topic,
      topicId: this.parts.kernel.topics.get(topic)?.id,
      partition,
      committed: this.parts.group.offsets.committed(keyOf(cursor)),
      logStart: log?.logStart ?? 0n,
      logEnd: log?.readableEnd(this.parts.limits.isolation) ?? 0n
    }
  }

  private nextReadable(): Cursor | undefined {
    if (!this.parts.reaches()) return undefined
    const cursors = [...this.cursors.values()]
    for (let i = 0; i < cursors.length; i++) {
      const cursor = cursors[(this.nextCursorIndex + i) % cursors.length]!
      const log = this.log(cursor)
      if (!log || !readable(cursor, log, this.parts.limits)) continue
      this.nextCursorIndex = (this.nextCursorIndex + i + 1) % cursors.length
      return cursor
    }
    return undefined
  }

  /** Checks that the cursor is still there, since a fetch takes time. */
  private fetch(cursor: Cursor): Broker.ConsumerEvent | undefined {
    const log = this.log(cursor)
    if (!log || !this.parts.reaches() || this.cursors.get(keyOf(cursor)) !== cursor) return undefined
    return fetch(cursor, log, this.parts.limits)
  }

  private log({ topic, partition }: TopicPartition): PartitionLog | undefined {
    return this.parts.kernel.topics.log(topic, partition)
  }

  private removeCursor(cursor: Cursor): void {
    this.cursors.delete(keyOf(cursor))
    this.unwatch(cursor)
  }

  private watch(cursor: Cursor): void {
    this.log(cursor)?.watchers.add(this.wake)
  }

  private unwatch(cursor: Cursor): void {
    this.log(cursor)?.watchers.delete(this.wake)
  }

  private report(
    _tag: "Assigned" | "Revoked" | "Lost",
    generation: number,
    partitions: ReadonlyArray<TopicPartition>
  ): void {
    const { groupId } = this.parts.group
    const { memberId } = this.member
    this.parts.kernel.journal({ _tag, groupId, memberId, generation, partitions: partitions.map(keyOf) })
  }
}

const keyOf = (at: TopicPartition): string => ConsumerRecord.partitionKey(at.topic, at.partition)

const coordinates = ({ topic, partition }: TopicPartition): TopicPartition => ({ topic, partition })

const byGeneration = <A extends { readonly generation: number }>(
  values: ReadonlyArray<A>
): ReadonlyMap<number, ReadonlyArray<A>> => Map.groupBy(values, ({ generation }) => generation)
