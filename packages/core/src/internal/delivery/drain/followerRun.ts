/**
 * The followers of one key in work: a loop over them with one failure boundary around it, as the main topic's hot loop has (`inOrderRun.ts`). Per record it runs the user's
 * effect and sets plain variables. A failure ends the loop at its record, which takes the slow path.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ConsumerRecord } from "../../../ConsumerRecord.ts"
import type { Entry } from "../../order/entry.ts"
import type { Unit } from "../../order/unit.ts"
import type { Partition } from "../../partition/partition.ts"
import { Undecodable } from "../../record/decoding.ts"
import { awaitsPublish, type DeliveryResult, type ResultWithCopy, staysInPlace } from "../../record/deliveryResult.ts"
import * as Preparing from "../../record/preparing.ts"
import type { Handler } from "../../settings/bindingDefinition.ts"
import { DeliveryContext } from "../../slots/deliveryContext.ts"
import type { StartGate } from "../../slots/startGate.ts"
import {
  type ConsumerContext,
  reportCall,
  reportHandledAtOnce,
  reportSettled,
  reportStarted
} from "../consumerContext.ts"
import { deliver, hasCalled } from "../recordDelivery.ts"
import type { RecordInWork } from "../recordInWork.ts"
import * as BlockedKey from "./blockedKey.ts"

export type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

/** The parts that the followers of one unit share. */
export interface Shared<R> {
  readonly context: ConsumerContext<R>
  readonly handler: PerRecord<R>
  readonly unit: Unit
}

/** It is also the record in work: a key has one at a time. */
export class FollowerRun<R> implements RecordInWork<R>, StartGate {
  readonly delivery: DeliveryContext
  readonly mayWait = true
  /** Whether a record has become the key's lock: the key does not drain any more. */
  hasMoved = false
  readonly #shared: Shared<R>
  readonly #entry: Entry
  readonly #missingFor: ReturnType<typeof Preparing.make>
  /** Handles follower after follower. Fails with the cause of the one that ended it. */
  readonly #loop: Effect.Effect<void, unknown, R>
  #record: ConsumerRecord | undefined = undefined
  /** The record whose preparations have run. */
  #prepared: ConsumerRecord | undefined = undefined
  #receivedMillis: number

  constructor(shared: Shared<R>, entry: Entry) {
    const { context } = shared
    this.#shared = shared
    this.#entry = entry
    this.#receivedMillis = context.clock.currentTimeMillisUnsafe()
    this.delivery = new DeliveryContext(context.limits, this.#receivedMillis)
    this.#missingFor = Preparing.make(context.definition.serdes)
    this.#loop = Effect.whileLoop<unknown, unknown, R>({ while: this.#goesOn, body: this.#begin, step: this.#finish })
  }

  /** The effects that the first follower needs before it is decoded. */
  preparations(): ReadonlyArray<Effect.Effect<void>> {
    const record = this.#entry.followers.first
    if (this.#missingFor === undefined || record === undefined) return []
    this.#prepared = record
    return this.#missingFor(record)
  }

  /** Handles followers until something else is to be done, the first one at least. False when the partition stops first. */
  get goOn(): Effect.Effect<boolean, never, R> {
    return Effect.suspend(() => {
      this.#take(this.#entry.followers.first!)
      if (this.#isBlocked(this.record)) return this.#settleBlocked
      return Effect.flatMap(this.partition.guard(this.#loop, this.delivery), (exit) =>
        Exit.isSuccess(exit) ? Effect.succeed(true) : this.#settleFailed(exit.cause)
      )
    })
  }

  // The hot path

  readonly #goesOn = (): boolean => {
    const { partition } = this
    const record = this.#entry.followers.first
    if (record === undefined || partition.stopping || !partition.open || this.#isBlocked(record)) return false
    if (this.#shared.unit.locks.mustRoll(this.#entry)) return false
    if (this.#missingFor !== undefined && record !== this.#prepared && this.#missingFor(record).length > 0) return false
    this.#take(record)
    return true
  }

  #take(record: ConsumerRecord): void {
    this.#record = record
    this.#receivedMillis = this.context.clock.currentTimeMillisUnsafe()
  }

  /** Its key waited for too long, or somebody has decided to skip it. */
  #isBlocked({ offset }: ConsumerRecord): boolean {
    return offset < this.#entry.blockedTo
  }

  readonly #begin = (): Effect.Effect<unknown, unknown, R> => {
    this.delivery.begin(this.#receivedMillis)
    return this.delivery.tryAdmit(this) ? this.#start() : this.delivery.admit(this, this.#start)
  }

  readonly #start = (): Effect.Effect<unknown, unknown, R> => {
    reportStarted(this.context, this.partition, this.record)
    return this.#invoke()
  }

  #invoke(): Effect.Effect<unknown, unknown, R> {
    const { context, handler } = this.#shared
    const invoked = handler.invoke(this.record, context.receiver, this.#receivedMillis)
    return invoked instanceof Undecodable ? Effect.fail(invoked) : invoked
  }

  readonly #finish = (): void => {
    const { record, delivery } = this
    reportCall(this.context, delivery)
    delivery.succeed()
    reportHandledAtOnce(this.context, this.partition, record)
    this.#shared.unit.handled(this.#entry, record)
  }

  // A record that failed

  #settleFailed(cause: Cause.Cause<unknown>): Effect.Effect<boolean, never, R> {
    if (hasCalled(cause)) reportCall(this.context, this.delivery)
    return deliver(this, cause)
  }

  get context(): ConsumerContext<R> {
    return this.#shared.context
  }

  get record(): ConsumerRecord {
    return this.#record!
  }

  get partition(): Partition {
    return this.#shared.unit.options.main
  }

  get gate(): StartGate {
    return this
  }

  get current(): ConsumerRecord {
    return this.record
  }

  get stopping(): boolean {
    return this.partition.stopping
  }

  get ending(): boolean {
    return this.partition.stopping
  }

  get open(): boolean {
    return this.partition.open
  }

  get runnable(): Effect.Effect<void> {
    return this.partition.runnable
  }

  onStop(listener: () => void): () => void {
    return this.partition.onStop(listener)
  }

  attempt(isFirst: boolean): Effect.Effect<unknown, unknown, R> {
    return this.delivery.admit(this, isFirst ? this.#start : () => this.#invoke())
  }

  settle(result: DeliveryResult): boolean | Effect.Effect<boolean> {
    const { context, unit } = this.#shared
    if (awaitsPublish(result)) return this.#publish(result)
    reportSettled(context, this.partition, this.record, result)
    if (result.settlement === "Abandoned" || staysInPlace(result)) return false
    unit.handled(this.#entry, this.record)
    return true
  }

  get #settleBlocked(): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const { context, unit } = this.#shared
      return this.#publish(BlockedKey.letterOf(context, unit, this.#entry, this.record))
    })
  }

  /** The record leaves: as the key's next lock, or as a dead letter, behind which the key goes on. */
  #publish(result: ResultWithCopy): Effect.Effect<boolean> {
    const { context, unit } = this.#shared
    const entry = this.#entry
    if (this.partition.stopping)
      return Effect.as(
        Effect.sync(() => this.#abandon(result)),
        false
      )
    unit.table.shift(entry)
    const leaving = unit.locks.moveOn(entry, this.record.offset, result)
    const { move } = entry
    // The lock may be read, handled, and drain again before it is acknowledged.
    if (leaving.settlement === "Routed") entry.isDraining = false
    return Effect.map(context.copyPublisher.publish(leaving.copy), (isAcknowledged) => {
      if (!isAcknowledged) {
        this.#abandon(leaving)
        return false
      }
      reportSettled(context, this.partition, this.record, leaving)
      if (leaving.settlement === "Routed") {
        if (unit.table.followers > 0) unit.table.followers--
        this.hasMoved = true
        if (move !== undefined) unit.locks.acknowledged(entry, move)
      } else {
        entry.awaitsLetter = false
        unit.handled(entry, this.record)
      }
      return true
    })
  }

  #abandon(result: DeliveryResult): void {
    reportSettled(this.#shared.context, this.partition, this.record, { ...result, settlement: "Abandoned" })
  }
}
