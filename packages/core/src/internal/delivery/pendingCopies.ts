/**
 * The copies of one partition that are on their way to a retry topic or the dead letter topic. The next record does not wait for their acknowledgement, the commit
 * does: each record stays unfinished until then. The number of pending copies is bounded, in records and in bytes. Copies of records that fail before the
 * partition's fiber yields are published together.
 */
import { Effect, FiberSet, Latch, type Scope } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Partition } from "../partition/partition.ts"
import * as StillOwned from "../publish/stillOwned.ts"
import { type DeliveryResult, type ResultWithCopy, staysInPlace } from "../record/deliveryResult.ts"
import { type ConsumerContext, reportSettled } from "./consumerContext.ts"

interface PendingCopy {
  readonly record: ConsumerRecord
  readonly bytes: number
  readonly sequence: number
  readonly result: ResultWithCopy
}

const most = { records: 1_000, bytes: 4 * 1024 * 1024 }

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
  readonly #context: ConsumerContext<unknown>
  readonly #partition: Partition
  readonly #listener: Listener
  readonly #fork: (effect: Effect.Effect<void>) => void
  readonly #room = Latch.makeUnsafe(true)
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
  }

  /** Whether a copy is on its way: nothing behind its record can be committed. */
  hasPending(): boolean {
    return this.#records > 0
  }

  /** Reports a result that needs no copy. True when the record is finished by it. */
  finish(record: ConsumerRecord, sequence: number, result: DeliveryResult): boolean {
    reportSettled(this.#context, this.#partition, record, result)
    if (result.settlement === "Abandoned" || staysInPlace(result)) return false
    this.#partition.tracker.finish(sequence)
    this.#listener.onFinished()
    return true
  }

  /**
   * Takes a record over, to publish its copy. Returns when there is room for another, or, under `STRICT`, when the copy is acknowledged. The answer is false
   * when the copy is not going to be published, since the partition stopped.
   */
  add(record: ConsumerRecord, sequence: number, result: ResultWithCopy): Effect.Effect<boolean> {
    const pending = { record, bytes: sizeOf(record), sequence, result }
    const { copyPublisher, definition } = this.#context
    if (definition.orderingMode === "STRICT")
      return Effect.map(copyPublisher.publish(result.copy), (acknowledged) => this.#onAnswer(pending, acknowledged))
    // A stop never leads to a copy (ruling 17). A copy that was taken over before it is published: more may be handled behind its record.
    if (this.#partition.stopping) return Effect.sync(() => this.#onAnswer(pending, false))
    this.#records++
    this.#bytes += pending.bytes
    this.#addToBatch(pending)
    if (this.#hasRoom()) return accepted
    this.#room.closeUnsafe()
    return Effect.as(this.#partition.until(this.#room.await), true)
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

  /** The copy is no longer on its way. */
  #leave(pending: PendingCopy, acknowledged: boolean): void {
    this.#onAnswer(pending, acknowledged)
    this.#records--
    this.#bytes -= pending.bytes
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
    if (definition.listenerType === "BATCH") return true
    if (definition.ackMode === "MANUAL_IMMEDIATE") committer.hasten(this.#partition)
    else committer.mark(this.#partition)
    return true
  }
}

export const make = Effect.fnUntraced(function* (
  context: ConsumerContext<unknown>,
  partition: Partition,
  listener: Listener = nobody
): Effect.fn.Return<PendingCopies, never, Scope.Scope> {
  const fibers = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(fibers)()
  return new PendingCopies(context, partition, listener, fork, FiberSet.awaitEmpty(fibers))
})

const accepted = Effect.succeed(true)

const sizeOf = ({ key, value }: ConsumerRecord): number => (key?.length ?? 0) + (value?.length ?? 0)
