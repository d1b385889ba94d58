/**
 * The copies of one partition that are on their way to a retry topic or the dead letter topic. Each record stays unfinished until its copy is acknowledged.
 *
 * Under `MANUAL` the next record does not wait for that, only the commit does. The number of pending copies is bounded, in records and in bytes. Copies of records that
 * fail before the partition's fiber yields are published together. Under `MANUAL_IMMEDIATE` and `STRICT` each copy is waited for (ruling 73). A batch is acknowledged as a
 * whole (ruling 52): its scheduler waits for its copies at its end.
 *
 * A partition that is given up goes on with its copies until they are acknowledged, or its drain ends (ruling 83).
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import * as StillOwned from "../publish/stillOwned.ts"
import { type DeliveryResult, type ResultWithCopy, staysInPlace } from "../record/deliveryResult.ts"
import * as BesideFibers from "./besideFibers.ts"
import { type ConsumerContext, reportSettled } from "./consumerContext.ts"

interface PendingCopy {
  readonly record: ConsumerRecord
  readonly bytes: number
  readonly sequence: number
  readonly result: ResultWithCopy
}

/** Enough for full requests. More copies would outlive the collector's young generation: a thousand cost a sixth more CPU where every record fails. */
const most = { records: 250, bytes: 4 * 1024 * 1024 }

/** Hears what becomes of the records. */
export interface Listener {
  /** A record is finished. */
  readonly onFinished: () => void
  /** A record stays unfinished: the partition stops, and no copy takes the record's place. */
  readonly onAbandoned: (sequence: number) => void
}

const nobody: Listener = { onFinished: () => {}, onAbandoned: () => {} }

export class PendingCopies {
  /** Returns when no copy is on its way. */
  readonly idle: Effect.Effect<void>
  /** Whether no record goes ahead of a copy: after a crash, only records that were in flight are repeated (ruling 73). */
  readonly waitsForEach: boolean
  readonly #commitsEach: boolean
  readonly #context: ConsumerContext<unknown>
  readonly #partition: Partition
  readonly #listener: Listener
  readonly #fork: (effect: Effect.Effect<void>) => void
  readonly #room = Latch.makeUnsafe(true)
  /** Open while no copy is pending. */
  readonly #settled = Latch.makeUnsafe(true)
  /** The copies of the next request. */
  #batch: Array<PendingCopy> = []
  #records = 0
  #bytes = 0
  #isOpeningRoom = false

  constructor(
    context: ConsumerContext<unknown>,
    partition: Partition,
    listener: Listener,
    fork: (effect: Effect.Effect<void>) => void,
    idle: Effect.Effect<void>
  ) {
    this.idle = idle
    this.#context = context
    this.#partition = partition
    this.#listener = listener
    this.#fork = fork
    const { ackMode, listenerType, orderingMode } = context.definition
    this.#commitsEach = ackMode === "MANUAL_IMMEDIATE" && listenerType !== "BATCH"
    this.waitsForEach = this.#commitsEach || orderingMode === "STRICT"
  }

  /** Whether a copy is on its way: nothing behind its record can be committed. */
  hasPending(): boolean {
    return this.#records > 0
  }

  /** Returns when no copy is pending: each is acknowledged, and committed where each is waited for, or given up. */
  get settled(): Effect.Effect<void> {
    return this.#settled.await
  }

  /** Reports a result that needs no copy. True when the record is finished by it. */
  finish(record: ConsumerRecord, sequence: number, result: DeliveryResult): boolean {
    reportSettled(this.#context, this.#partition, record, result)
    if (result.settlement === "Abandoned" || staysInPlace(result)) return false
    this.#partition.finish(sequence)
    this.#listener.onFinished()
    return true
  }

  /**
   * Takes a record over, to publish its copy. Returns when there is room for another, or, where each copy is waited for, when the copy is acknowledged and the record
   * committed as the ack mode says. The answer is false when the copy is not going to be published, since the partition stopped.
   */
  add(record: ConsumerRecord, sequence: number, result: ResultWithCopy): Effect.Effect<boolean> {
    const { order, stopping } = this.#partition
    const leaving = stopping || order === undefined ? result : order.park(record, sequence, result)
    const pending = { record, bytes: sizeOf(record), sequence, result: leaving }
    // A stop never leads to a copy (ruling 17). A copy that was taken over before it is published: more may be handled behind its record.
    if (stopping) return Effect.sync(() => this.#onAnswer(pending, false))
    this.#records++
    this.#bytes += pending.bytes
    this.#settled.closeUnsafe()
    if (this.waitsForEach) return this.#publishAndWait(pending)
    this.#addToBatch(pending)
    if (this.#hasRoom()) return accepted
    this.#room.closeUnsafe()
    return Effect.as(this.#partition.until(this.#room.await), true)
  }

  #publishAndWait(pending: PendingCopy): Effect.Effect<boolean> {
    const { copyPublisher, committer } = this.#context
    const commit = this.#commitsEach ? committer.commit(this.#partition) : Effect.void
    return copyPublisher.publish(pending.result.copy).pipe(
      Effect.map((acknowledged) => this.#onAnswer(pending, acknowledged)),
      Effect.tap((isFinished) => (isFinished ? commit : Effect.void)),
      Effect.ensuring(Effect.sync(() => this.#remove(pending)))
    )
  }

  /** Copies keep their order: a copy for another topic begins another batch. */
  #addToBatch(pending: PendingCopy): void {
    const last = this.#batch.at(-1)
    if (last !== undefined && last.result.copy.topic === pending.result.copy.topic) {
      this.#batch.push(pending)
      return
    }
    this.#batch = [pending]
    this.#fork(this.#publish(this.#batch))
  }

  /** Starts once the partition's fiber has yielded. */
  #publish(copies: ReadonlyArray<PendingCopy>): Effect.Effect<void> {
    return Effect.flatMap(Effect.andThen(Effect.yieldNow, StillOwned.confirmed(this.#partition)), (isOurs) => {
      if (this.#batch === copies) this.#batch = []
      if (isOurs) return this.#publishEach(copies)
      // Another owner may have the records by now.
      for (const pending of copies) this.#leave(pending, false)
      return Effect.void
    })
  }

  #publishEach(copies: ReadonlyArray<PendingCopy>): Effect.Effect<void> {
    return this.#context.copyPublisher.publishEach(
      copies.map(({ result }) => result.copy),
      (index, answer) => {
        const pending = copies[index]!
        if (typeof answer === "boolean") this.#leave(pending, answer)
        else this.#fork(Effect.map(answer, (acknowledged) => this.#leave(pending, acknowledged)))
      }
    )
  }

  #leave(pending: PendingCopy, acknowledged: boolean): void {
    this.#onAnswer(pending, acknowledged)
    this.#remove(pending)
  }

  /** The copy is no longer on its way. */
  #remove({ bytes }: PendingCopy): void {
    this.#records--
    this.#bytes -= bytes
    if (this.#records === 0) this.#settled.openUnsafe()
    if (this.#isOpeningRoom || Latch.isOpen(this.#room) || !this.#hasRoom()) return
    this.#isOpeningRoom = true
    this.#fork(this.#openRoom)
  }

  #hasRoom(): boolean {
    return this.#records < most.records && this.#bytes < most.bytes
  }

  /** After everything that one answer of the broker makes room for: the records that fail next are published together, too. */
  readonly #openRoom = Effect.map(Effect.yieldNow, () => {
    this.#isOpeningRoom = false
    if (this.#hasRoom()) this.#room.openUnsafe()
  })

  #onAnswer({ record, sequence, result }: PendingCopy, acknowledged: boolean): boolean {
    const { definition, committer } = this.#context
    if (!acknowledged) {
      this.finish(record, sequence, { ...result, settlement: "Abandoned" })
      this.#listener.onAbandoned(sequence)
      return false
    }
    this.finish(record, sequence, result)
    // A batch is acknowledged as a whole, by its scheduler.
    if (definition.listenerType !== "BATCH" && !this.#commitsEach) committer.mark(this.#partition)
    return true
  }
}

export const make = Effect.fnUntraced(function* (
  context: ConsumerContext<unknown>,
  partition: Partition,
  listener: Listener = nobody
): Effect.fn.Return<PendingCopies, never, Scope.Scope> {
  const fibers = yield* BesideFibers.make(context)
  const fork = yield* FiberSet.runtime(fibers)()
  return new PendingCopies(context, partition, listener, fork, FiberSet.awaitEmpty(fibers))
})

const accepted = Effect.succeed(true)

const sizeOf = ({ key, value }: ConsumerRecord): number => (key?.length ?? 0) + (value?.length ?? 0)
