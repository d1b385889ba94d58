/**
 * The scheduler of the keys that drain (`orderingMode: "PER_KEY"`): it handles what followed a parked record, in order, beside the loops of the partitions.
 *
 * A follower is a record of the main topic, wherever it is read from: it takes the main topic's slots and permits, waits for its gate, and fails as it would there. At most as
 * many keys drain at once as handlers can run; the others wait for their turn.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
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
import * as BesideFibers from "../besideFibers.ts"
import { type ConsumerContext, reportSettled, reportStarted } from "../consumerContext.ts"
import { annotated } from "../logAnnotations.ts"
import { deliver } from "../recordDelivery.ts"
import type { RecordInWork } from "../recordInWork.ts"
import * as BlockedKey from "./blockedKey.ts"

type PerRecord<R> = Extract<Handler<R>, { readonly _tag: "PerRecord" }>

/** Keys that drain at once where nothing limits the handlers. */
const mostDraining = 64

/** Between two looks at the keys that wait. */
const lookMillis = 1_000

/** Between two looks at the configuration of the source, while keys are parked. */
const retentionMillis = 60_000

export interface Followers {
  /** Returns when no key drains any more: once the partition stops. */
  readonly idle: Effect.Effect<void>
}

/** The parts that the followers of one unit share. */
interface Shared<R> {
  readonly context: ConsumerContext<R>
  readonly handler: PerRecord<R>
  readonly unit: Unit
}

/** Begins to serve a unit. It ends with the scope. */
export const make = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>,
  handler: PerRecord<R>,
  unit: Unit
): Effect.fn.Return<Followers, never, R | Scope.Scope> {
  const fibers = yield* BesideFibers.make(context)
  const fork = yield* FiberSet.runtime(fibers)<R>()
  const { maxInFlight } = context.definition
  const most = Math.min(2 * maxInFlight, mostDraining)
  const waiting: Array<Entry> = []
  const shared: Shared<R> = { context, handler, unit }
  let running = 0

  const startNext = (): void => {
    while (running < most && !unit.stopping) {
      const entry = waiting.shift()
      if (entry === undefined) return
      running++
      fork(
        Effect.ensuring(
          drainKey(shared, entry),
          Effect.sync(() => {
            running--
            startNext()
          })
        )
      )
    }
  }
  unit.onDrain = (entry) => {
    waiting.push(entry)
    startNext()
  }
  unit.onBeside = (effect) => fork(Effect.asVoid(effect))
  yield* Effect.forkScoped(Effect.catchDefect(lookAfter(shared), context.onDefect))
  yield* Effect.forkScoped(askRetention(unit))
  unit.start()
  return { idle: FiberSet.awaitEmpty(fibers) }
})

/** The configuration of the source may change while keys are parked. */
const askRetention = ({ table, options }: Unit): Effect.Effect<never> =>
  Effect.forever(
    Effect.flatMap(Effect.sleep(retentionMillis), () =>
      table.size === 0 ? Effect.void : options.askRetention(retentionMillis)
    )
  )

/** Keys that hold up others, and keys that have waited for too long. */
const lookAfter = <R>({ context, unit }: Shared<R>): Effect.Effect<never> =>
  Effect.forever(
    Effect.flatMap(Effect.sleep(lookMillis), () =>
      Effect.sync(() => {
        if (unit.table.size === 0 || unit.stopping) return
        for (const moved of unit.unblock()) unit.onBeside(moved)
        BlockedKey.expire(context, unit)
      })
    )
  )

/** Handles what follows a key until nothing follows, its lock has moved on, or the partition stops. */
const drainKey = <R>(shared: Shared<R>, entry: Entry): Effect.Effect<void, never, R> => {
  const { context, unit } = shared
  const { main } = unit.options
  const delivery = new DeliveryContext(context.limits, context.clock.currentTimeMillisUnsafe())
  const missingFor = Preparing.make(context.definition.serdes)
  const loop = Effect.gen(function* () {
    while (!main.stopping) {
      const record = entry.followers.first
      if (record === undefined) {
        if (entry.evictedFrom === undefined) return unit.drained(entry)
        yield* main.until(untilRead(unit, entry))
        continue
      }
      for (const prepared of missingFor?.(record) ?? []) yield* main.until(prepared)
      if (main.stopping) return
      const work = new FollowerRecord(shared, entry, record, delivery)
      const isBlocked = record.offset < entry.blockedTo
      const isDone = isBlocked ? yield* work.settleBlocked : yield* deliver(work)
      if (!isDone || work.hasMoved) return
      if (unit.locks.mustRoll(entry)) yield* unit.locks.roll(entry)
    }
  })
  return annotated(loop, context, main, () => entry.followers.first)
}

/** Waits until followers are read from the source again. */
const untilRead = (unit: Unit, entry: Entry): Effect.Effect<void> =>
  Effect.suspend(() => {
    const isRead = Latch.makeUnsafe(false)
    entry.onRead = () => isRead.openUnsafe()
    unit.onWork()
    return isRead.await
  })

/** A follower in work. */
class FollowerRecord<R> implements RecordInWork<R>, StartGate {
  readonly record: ConsumerRecord
  readonly delivery: DeliveryContext
  readonly mayWait = true
  /** Whether the record has become the key's lock: the key does not drain any more. */
  hasMoved = false
  readonly #shared: Shared<R>
  readonly #entry: Entry
  readonly #receivedMillis: number

  constructor(shared: Shared<R>, entry: Entry, record: ConsumerRecord, delivery: DeliveryContext) {
    this.#shared = shared
    this.#entry = entry
    this.record = record
    this.delivery = delivery
    this.#receivedMillis = shared.context.clock.currentTimeMillisUnsafe()
  }

  get context(): ConsumerContext<R> {
    return this.#shared.context
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
    const { context, handler } = this.#shared
    return this.delivery.admit(this, () => {
      if (isFirst) reportStarted(context, this.partition, this.record)
      const invoked = handler.invoke(this.record, context.receiver, this.#receivedMillis)
      return invoked instanceof Undecodable ? Effect.fail(invoked) : invoked
    })
  }

  settle(result: DeliveryResult): boolean | Effect.Effect<boolean> {
    const { context, unit } = this.#shared
    if (awaitsPublish(result)) return this.#publish(result)
    reportSettled(context, this.partition, this.record, result)
    if (result.settlement === "Abandoned" || staysInPlace(result)) return false
    unit.handled(this.#entry, this.record)
    return true
  }

  /** Its key waited for too long, or somebody has decided to skip it. */
  get settleBlocked(): Effect.Effect<boolean> {
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
