/**
 * One assigned partition: its queue of fetched chunks, its pauses, its offsets. It lives as long as the assignment.
 *
 * The consumer's loop puts chunks in and ends the partition; a scheduler of room `delivery` runs its stream. No change of state yields, so there is no lock.
 */

import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { RecordChunk } from "../../Broker.ts"
import { type ConsumerRecord, partitionKey } from "../../ConsumerRecord.ts"
import type { AwaitedUnit, HeldBatch, PauseReason } from "../../Snapshot.ts"
import type { PartitionCounters } from "../observe/runMetrics.ts"
import type { TierTopic } from "../retry/tiers.ts"
import type { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import { Buffered } from "./buffered.ts"
import { CommitText } from "./commitText.ts"
import type { Committable } from "./committer.ts"
import { DueRecords } from "./dueRecords.ts"
import * as GuardedRuns from "./guardedRuns.ts"
import { LogView } from "./logView.ts"
import * as OffsetTracker from "./offsetTracker.ts"
import type { OrderedPart } from "./orderedPart.ts"
import type { PartitionOptions, WaterMarks } from "./partitionOptions.ts"
import * as PauseReasons from "./pauseReasons.ts"
import * as Progress from "./progress.ts"
import { StopSignal } from "./stopSignal.ts"

export class Partition implements Committable, StartGate {
  readonly topic: string
  readonly partition: number
  readonly generation: number
  readonly key: string
  readonly tier: TierTopic | undefined
  readonly tracker: OffsetTracker.OffsetTracker
  readonly counters: PartitionCounters
  readonly log: LogView
  readonly commitText: CommitText
  /** Set where records become due one by one. */
  readonly due: DueRecords | undefined
  committed: bigint
  committedAhead: string | undefined
  /** Whether a record may start now: the partition is not stopping, and no pause holds its records. */
  open = true
  stopping = false
  readonly mayWait = true
  /** Whether the session does not know yet where to read: chunks that come before that are from a wrong position. */
  awaitsSeek = false
  /** The batch in front of which the fetch stands, because it cannot be read. */
  unreadable: HeldBatch | undefined
  /** Since when a record has waited for its serde to be prepared. */
  preparingSinceMillis: number | undefined
  /** The record that is being handled, or the first of a batch. Unused where records run side by side. */
  current: ConsumerRecord | undefined
  /** Set once its unit runs (`orderingMode: "PER_KEY"`). */
  order: OrderedPart | undefined
  /** Why its unit does not run, and since when; undefined where it does, and where there are no units. */
  awaitsUnit: AwaitedUnit | undefined
  /** Called when a record is finished that no scheduler has in work: there may be room for another one. Set by the scheduler that waits for room. */
  onFinishedBeside: () => void = () => {}
  /** Runs that the processing budget may cut off. */
  readonly guarded = new Set<GuardedRuns.GuardedRun>()

  readonly #options: PartitionOptions
  readonly #queue: Queue.Queue<RecordChunk, Cause.Done>
  readonly #gate = Latch.makeUnsafe(true)
  readonly #stopSignal = new StopSignal()
  readonly #copiesEnd = Latch.makeUnsafe(false)
  #reasons = PauseReasons.empty
  #fetchPaused = false
  #tellingSession = false
  #over = false
  readonly #buffered = new Buffered()
  readonly #progress = Progress.make()

  constructor(options: PartitionOptions, queue: Queue.Queue<RecordChunk, Cause.Done>) {
    this.topic = options.topic
    this.partition = options.partition
    this.generation = options.generation
    this.key = partitionKey(options.topic, options.partition)
    this.tier = options.tier
    this.due = DueRecords.of(options)
    this.tracker = this.due?.tracker ?? OffsetTracker.make(options.position, { maxSpan: options.maxSpan })
    this.counters = options.counters
    this.committed = options.committed
    this.log = new LogView(options.position, options.logEnd)
    this.commitText = new CommitText(options.metadata, options.ofOrder ?? {})
    this.committedAhead = options.finishedAhead
    this.#options = options
    this.#queue = queue
  }

  /** The partition's records, chunk by chunk; ends when the assignment does. */
  get chunks(): Stream.Stream<RecordChunk> {
    return Stream.fromQueue(this.#queue)
  }

  /** Text that each commit carries. */
  get metadata(): string | undefined {
    return this.commitText.at(this.position(), this.order)
  }

  position(): bigint {
    return this.tracker.position()
  }

  /** Offsets that are not finished. */
  lag(): bigint {
    const lag = this.log.lag(this.position()) + BigInt(this.order?.followers ?? 0)
    return this.due === undefined ? lag : lag - BigInt(this.due.finishedAhead)
  }

  finishedAhead(): string | undefined {
    return this.#options.metadata === undefined ? undefined : this.due?.finishedText
  }

  /** How long the position has not moved although there is lag, since the first question that found it so. */
  waitingMillis(nowMillis: number): number {
    return this.#progress.look(this.position(), this.lag() > 0n && this.due?.holdsOldest !== true, nowMillis)
  }

  /** Chunks that are fetched and not finished. */
  get held(): WaterMarks {
    return this.#buffered
  }

  isUnconfirmed(): boolean {
    return this.#options.session.isUnconfirmed()
  }

  owned(): boolean {
    return !this.#over
  }

  mayPublish(): boolean {
    return !this.#over && !Latch.isOpen(this.#copiesEnd)
  }

  get ending(): boolean {
    return this.stopping
  }

  get reasons(): PauseReasons.PauseReasons {
    return this.#reasons
  }

  /** Takes a fetched chunk. True when the fetch must be paused now (`syncFetch`). */
  offer(chunk: RecordChunk): boolean {
    if (this.stopping || this.awaitsSeek) return false
    Queue.offerUnsafe(this.#queue, chunk)
    this.log.took(chunk)
    this.#buffered.add(chunk.records.length, chunk.bytes)
    if (!this.#buffered.isAt(this.#options.highWater())) return false
    this.#reasons = PauseReasons.add(this.#reasons, "backpressure")
    return !this.#fetchPaused
  }

  /** Fetched records are finished. True when fetching may resume (`syncFetch`). */
  release(records: number, bytes: number): boolean {
    this.#buffered.remove(records, bytes)
    if (PauseReasons.fetchAllowed(this.#reasons)) return false
    if (!this.#buffered.isHalf(this.#options.highWater())) return false
    this.#reasons = PauseReasons.remove(this.#reasons, "backpressure")
    return PauseReasons.fetchAllowed(this.#reasons)
  }

  addReason(reason: PauseReason): void {
    this.setReasons(PauseReasons.add(this.#reasons, reason))
  }

  removeReason(reason: PauseReason): void {
    this.setReasons(PauseReasons.remove(this.#reasons, reason))
  }

  /** The next batch cannot be read: fetching stops in front of it. Undefined: fetching goes on behind it. */
  holdBatch(batch: HeldBatch | undefined): void {
    this.unreadable = batch
    if (batch === undefined) this.removeReason("unreadable")
    else this.addReason("unreadable")
  }

  setReasons(reasons: PauseReasons.PauseReasons): void {
    this.#reasons = reasons
    this.#updateGate()
  }

  #updateGate(): void {
    this.open = !this.stopping && PauseReasons.handlingAllowed(this.#reasons)
    if (this.open || this.stopping) this.#gate.openUnsafe()
    else this.#gate.closeUnsafe()
  }

  /** Makes the session fetch, or not, as the reasons say. Only one fiber at a time tells the session: of two fibers, the later one could be overtaken by the earlier. */
  readonly syncFetch: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#tellingSession) return Effect.void
    this.#tellingSession = true
    return Effect.uninterruptible(this.#tellSession)
  })

  /** Repeats until the session does as the reasons say: they may change meanwhile. */
  readonly #tellSession: Effect.Effect<void> = Effect.suspend(() => {
    const pause = !PauseReasons.fetchAllowed(this.#reasons)
    if (this.#over || this.stopping || pause === this.#fetchPaused) {
      this.#tellingSession = false
      return Effect.void
    }
    this.#fetchPaused = pause
    const { onFetchPaused, onFetchResumed, session } = this.#options
    if (pause) onFetchPaused(this, this.#reasons)
    else onFetchResumed(this)
    return Effect.andThen(pause ? session.pause([this]) : session.resume([this]), this.#tellSession)
  })

  /** Waits until a record may start; returns at once when the partition is stopping. */
  get runnable(): Effect.Effect<void> {
    return this.open ? Effect.void : this.#gate.await
  }

  /** Whether a stopping partition may still run a record that has a started record behind it: the partition is still ours, and not paused. */
  get drainable(): boolean {
    return !this.#over && PauseReasons.handlingAllowed(this.#reasons)
  }

  /** Waits for the effect, but not longer than the partition runs. */
  until(effect: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.raceFirst(effect, this.#stopSignal.sent)
  }

  /** Waits for the effect, but not longer than copies may be published. */
  whileCopiesGoOn(effect: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.raceFirst(effect, this.#copiesEnd.await)
  }

  sleep(millis: number): Effect.Effect<void> {
    return this.until(Effect.sleep(millis))
  }

  /** No record starts any more and sleeps end. Running handlers may go on, and so may copies that are on their way. */
  stop(): void {
    if (this.stopping) return
    this.stopping = true
    this.#updateGate()
    this.#stopSignal.send()
    Queue.endUnsafe(this.#queue)
  }

  /** Calls the listener once, when the partition stops. The result removes the listener. */
  onStop(listener: () => void): () => void {
    return this.#stopSignal.onSent(listener)
  }

  /** No copy is sent any more. A refused copy that waits to be sent again is given up (ruling 83). */
  endCopies(): void {
    this.#copiesEnd.openUnsafe()
  }

  /** The assignment is over: nothing is committed for it any more. */
  end(): void {
    // First, since a stop wakes those that wait for it before it returns: a copy that waits to be published again must find the assignment over.
    this.#over = true
    this.endCopies()
    this.stop()
  }

  /** Answers the number of the record in the tracker. A record that waited for its due time has one already. */
  begin(record: ConsumerRecord): number {
    return this.due?.sequenceOf(record) ?? this.tracker.begin(record)
  }

  /** A record is done with. Where the partition is part of a unit, its key may hold it until it is free. */
  finish(sequence: number): void {
    if (this.order === undefined) this.tracker.finish(sequence)
    else this.order.finish(sequence)
  }

  /** The next fetched chunk, if one is here. */
  takeChunk(): RecordChunk | undefined {
    const taken = this.stopping ? undefined : Queue.takeUnsafe(this.#queue)
    return taken !== undefined && Exit.isSuccess(taken) ? taken.value : undefined
  }

  /** Waits this long, or until a chunk is here, or until the partition stops. The chunk stays in the queue. */
  sleepUntilChunk(millis: number): Effect.Effect<void> {
    return Effect.raceFirst(this.sleep(millis), Effect.ignore(Queue.peek(this.#queue)))
  }

  /** Runs user code so that the processing budget can cut it off without ending the partition. */
  guard<A, E, R>(effect: Effect.Effect<A, E, R>, delivery: DeliveryContext): Effect.Effect<Exit.Exit<A, E>, never, R> {
    return GuardedRuns.guard(this.guarded, this.#options.onGuarded, effect, delivery)
  }
}

export const make = (options: PartitionOptions): Effect.Effect<Partition> =>
  Effect.map(Queue.unbounded<RecordChunk, Cause.Done>(), (queue) => new Partition(options, queue))
