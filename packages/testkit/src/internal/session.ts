/**
 * The client side of a group member: its positions, what it is allowed to fetch, and the events that it hands over.
 *
 * `sync` is the one place where it learns what the coordinator thinks, and turns the difference into events. Owns the cursors.
 */
import { type Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import { Effect, Latch, Queue } from "effect"
import type { ConsumerGroup, Holding, Member } from "./consumerGroup.ts"
import type { Kernel } from "./kernel.ts"
import type { Isolation } from "./partitionLog.ts"

type TopicPartition = ConsumerRecord.TopicPartition
type Event = Broker.ConsumerEvent

interface Cursor extends TopicPartition {
  readonly generation: number
  /** undefined until `seek`: nothing is fetched. */
  position: bigint | undefined
  paused: boolean
  phase: "held" | "revoking" | "released"
}

export interface SessionSettings {
  readonly isolation: Isolation
  readonly maxBytesPerPartition: number
}

/** Chunks and other events that may wait in the queue; a fetch waits when it is full, as a client's buffer would make it. */
export const queueCapacity = 16

export class Session {
  member: Member
  readonly wakeUp = Latch.makeUnsafe()
  private ended = false
  private readonly cursors = new Map<string, Cursor>()
  /** Events that found the queue full, in order; at most a few per rebalance. */
  private readonly outbox: Array<Event> = []
  private turn = 0
  private failure: BrokerError.BrokerError | undefined
  readonly events: Queue.Queue<Event, BrokerError.BrokerError>
  private readonly kernel: Kernel
  private readonly group: ConsumerGroup
  private readonly settings: SessionSettings
  private readonly reaches: () => boolean

  constructor(
    kernel: Kernel,
    group: ConsumerGroup,
    settings: SessionSettings,
    events: Queue.Queue<Event, BrokerError.BrokerError>,
    reaches: () => boolean,
    join: (notify: () => void) => Member
  ) {
    this.kernel = kernel
    this.group = group
    this.settings = settings
    this.events = events
    this.reaches = reaches
    // The coordinator may have something to say while the join is still running; it is asked again right after.
    let joined = false
    this.member = join(() => {
      if (joined) this.sync()
    })
    joined = true
    this.sync()
  }

  get open(): boolean {
    return !this.ended
  }

  readonly wake = (): void => {
    this.wakeUp.openUnsafe()
  }

  /** Learns the coordinator's view, if it can be reached, and reports what changed. */
  sync(): void {
    if (this.ended || !this.reaches()) return
    if (this.member.state === "joined") {
      this.reportLost()
      this.reportRevoked()
      this.reportAssigned()
    } else {
      this.dropOut()
    }
    this.wake()
  }

  /** The client dies: what it held is lost, then the events fail. */
  die(error: BrokerError.BrokerError): void {
    if (this.ended) return
    this.lose([...this.cursors.values()])
    this.failure = error
    this.ended = true
    this.wake()
  }

  /** The session is over without a word. */
  close(): void {
    this.ended = true
    for (const cursor of this.cursors.values()) this.unwatch(cursor)
    this.cursors.clear()
    this.wake()
  }

  /** Registers again for topics whose partitions are new objects. */
  readonly rewatch = (topic: string): void => {
    for (const cursor of this.cursors.values()) if (cursor.topic === topic) this.watch(cursor)
    this.wake()
  }

  pause(partitions: ReadonlyArray<TopicPartition>): void {
    for (const at of partitions) {
      const cursor = this.cursor(at)
      if (cursor) cursor.paused = true
    }
  }

  resume(partitions: ReadonlyArray<TopicPartition>): void {
    for (const at of partitions) {
      const cursor = this.cursor(at)
      if (cursor) cursor.paused = false
    }
    this.wake()
  }

  seek(at: TopicPartition, offset: bigint): void {
    const cursor = this.cursor(at)
    if (!cursor || this.ended) return
    cursor.position = offset
    this.forgetFetches(cursor)
    this.wake()
  }

  /** Keys of entries whose assignment this session knows to be over. */
  stale(entries: ReadonlyArray<Broker.OffsetCommit>): ReadonlyArray<string> {
    return entries
      .filter((entry) => {
        const cursor = this.cursor(entry)
        return cursor?.generation !== entry.generation || cursor.phase === "released"
      })
      .map((entry) => ConsumerRecord.partitionKey(entry.topic, entry.partition))
  }

  /** Hands over events and chunks for as long as the session lives; waits without any timer when there is nothing. */
  readonly pump = (paceMillis: (topic: string) => number): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      while (true) {
        this.wakeUp.closeUnsafe()
        const event = this.outbox.shift()
        if (event) {
          yield* Queue.offer(this.events, event)
          continue
        }
        if (this.failure) return yield* Effect.asVoid(Queue.fail(this.events, this.failure))
        if (this.ended) return
        const cursor = this.nextReadable()
        if (!cursor) {
          yield* this.wakeUp.await
          continue
        }
        const millis = paceMillis(cursor.topic)
        if (millis > 0) yield* Effect.sleep(millis)
        const fetched = this.fetch(cursor)
        if (fetched) yield* Queue.offer(this.events, fetched)
      }
    })

  private cursor(at: TopicPartition): Cursor | undefined {
    return this.cursors.get(ConsumerRecord.partitionKey(at.topic, at.partition))
  }

  private dropOut(): void {
    const { groupInstanceId, state } = this.member
    if (state === "fenced" && groupInstanceId !== undefined) {
      this.die(new BrokerError.InstanceFenced({ groupId: this.group.groupId, groupInstanceId }))
      return
    }
    this.lose([...this.cursors.values()])
    this.member = this.group.join(this.member)
    this.sync()
  }

  private reportLost(): void {
    const { holdings } = this.member
    this.lose(
      [...this.cursors].flatMap(([key, cursor]) => {
        const holding = holdings.get(key)
        return holding?.generation === cursor.generation ? [] : [cursor]
      })
    )
  }

  private lose(gone: ReadonlyArray<Cursor>): void {
    for (const cursor of gone) {
      this.cursors.delete(ConsumerRecord.partitionKey(cursor.topic, cursor.partition))
      this.unwatch(cursor)
    }
    for (const [generation, cursors] of byGeneration(gone.filter((cursor) => cursor.phase !== "released"))) {
      this.emit({ _tag: "Lost", generation, partitions: cursors.map(coordinates) })
      this.report("Lost", generation, cursors)
    }
  }

  private reportRevoked(): void {
    const leaving: Array<Cursor> = []
    for (const [key, holding] of this.member.holdings) {
      const cursor = this.cursors.get(key)
      if (holding.phase !== "revoking" || !cursor) continue
      if (cursor.phase === "held") leaving.push(cursor)
      // A release that could not be delivered when it happened is delivered now.
      else if (cursor.phase === "released") this.release([cursor])
    }
    for (const [generation, cursors] of byGeneration(leaving)) {
      for (const cursor of cursors) cursor.phase = "revoking"
      const release = Effect.sync(() => this.release(cursors))
      this.emit({ _tag: "Revoked", generation, partitions: cursors.map(coordinates), release })
      this.report("Revoked", generation, cursors)
    }
  }

  private release(cursors: ReadonlyArray<Cursor>): void {
    const mine = cursors.filter((cursor) => this.cursor(cursor) === cursor)
    for (const cursor of mine) cursor.phase = "released"
    if (mine.length === 0 || this.ended || !this.reaches()) return
    for (const cursor of mine) this.forget(cursor)
    this.group.release(this.member, mine.map(keyOf))
  }

  private forget(cursor: Cursor): void {
    this.cursors.delete(keyOf(cursor))
    this.unwatch(cursor)
  }

  private reportAssigned(): void {
    const fresh = [...this.member.holdings].filter(
      ([key, holding]) => holding.phase === "held" && !this.cursors.has(key)
    )
    for (const [generation, holdings] of byGeneration(fresh.map(([, holding]) => holding))) {
      const partitions = holdings.map((holding) => this.admit(holding))
      this.emit({ _tag: "Assigned", generation, partitions })
      this.report("Assigned", generation, partitions)
    }
  }

  private admit({ topic, partition, generation }: Holding): Broker.AssignedPartition {
    const cursor: Cursor = { topic, partition, generation, position: undefined, paused: false, phase: "held" }
    const key = keyOf(cursor)
    this.cursors.set(key, cursor)
    this.watch(cursor)
    const log = this.kernel.topics.log(topic, partition)
    return {
      topic,
      partition,
      committed: this.group.committed(key),
      logStart: log?.logStart ?? 0n,
      logEnd: log?.readableEnd(this.settings.isolation) ?? 0n
    }
  }

  private nextReadable(): Cursor | undefined {
    if (!this.reaches()) return undefined
    const cursors = [...this.cursors.values()]
    for (let i = 0; i < cursors.length; i++) {
      const cursor = cursors[(this.turn + i) % cursors.length]!
      if (!this.readable(cursor)) continue
      this.turn = (this.turn + i + 1) % cursors.length
      return cursor
    }
    return undefined
  }

  private readable(cursor: Cursor): boolean {
    if (cursor.phase !== "held" || cursor.paused || cursor.position === undefined) return false
    const log = this.kernel.topics.log(cursor.topic, cursor.partition)
    if (!log) return false
    const outside = cursor.position < log.logStart || cursor.position > log.logEnd
    return outside || cursor.position < log.readableEnd(this.settings.isolation)
  }

  /** Reads one chunk; looks again whether it may, since time can have passed. */
  private fetch(cursor: Cursor): Event | undefined {
    const { topic, partition, generation, position } = cursor
    if (this.ended || !this.reaches() || this.cursor(cursor) !== cursor || !this.readable(cursor)) return undefined
    const log = this.kernel.topics.log(topic, partition)
    if (!log || position === undefined) return undefined
    const highWatermark = log.readableEnd(this.settings.isolation)
    const read = log.read(position, {
      maxBytes: this.settings.maxBytesPerPartition,
      maxRecords: this.kernel.settings.maxRecordsPerChunk,
      isolation: this.settings.isolation
    })
    if (!read) {
      cursor.position = undefined
      const { logStart } = log
      return { _tag: "OutOfRange", generation, topic, partition, position, logStart, logEnd: highWatermark }
    }
    cursor.position = read.nextOffset
    return { _tag: "Fetched", chunk: { topic, partition, generation, highWatermark, ...read } }
  }

  private emit(event: Event): void {
    if (this.outbox.length > 0 || !Queue.offerUnsafe(this.events, event)) this.outbox.push(event)
  }

  /** Takes what was fetched from a partition out of the queue, and what waits for room in it. */
  private forgetFetches(at: TopicPartition): void {
    const kept: Array<Event> = []
    while (Queue.sizeUnsafe(this.events) > 0) {
      const exit = Queue.takeUnsafe(this.events)
      if (exit?._tag === "Success" && !isFetchOf(exit.value, at)) kept.push(exit.value)
    }
    const waiting = this.outbox.splice(0)
    for (const event of kept) this.emit(event)
    this.outbox.push(...waiting)
  }

  private watch(cursor: Cursor): void {
    this.kernel.topics.log(cursor.topic, cursor.partition)?.watchers.add(this.wake)
  }

  private unwatch(cursor: Cursor): void {
    this.kernel.topics.log(cursor.topic, cursor.partition)?.watchers.delete(this.wake)
  }

  private report(
    _tag: "Assigned" | "Revoked" | "Lost",
    generation: number,
    partitions: ReadonlyArray<TopicPartition>
  ): void {
    const { groupId } = this.group
    this.kernel.journal({
      _tag,
      groupId,
      memberId: this.member.memberId,
      generation,
      partitions: partitions.map(keyOf)
    })
  }
}

const keyOf = (at: TopicPartition): string => ConsumerRecord.partitionKey(at.topic, at.partition)

const coordinates = ({ topic, partition }: TopicPartition): TopicPartition => ({ topic, partition })

/** What a fetch from a position led to: a chunk, or the news that the position does not exist. */
const isFetchOf = (event: Event, at: TopicPartition): boolean => {
  const fetched = event._tag === "Fetched" ? event.chunk : event._tag === "OutOfRange" ? event : undefined
  return fetched?.topic === at.topic && fetched.partition === at.partition
}

const byGeneration = <A extends { readonly generation: number }>(values: ReadonlyArray<A>): Map<number, Array<A>> => {
  const groups = new Map<number, Array<A>>()
  for (const value of values) {
    const group = groups.get(value.generation)
    if (group) group.push(value)
    else groups.set(value.generation, [value])
  }
  return groups
}
