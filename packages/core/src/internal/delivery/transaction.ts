/**
 * One transaction of a transactional binding: the records that run in it, and where it ends before all of them have.
 */
import { type Cause, Effect, Exit, Fiber, Result } from "effect"
import type { Producer, Transaction, TransactionalProducer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Clocks from "../base/clocks.ts"
import type { Partition } from "../partition/partition.ts"
import { Undecodable } from "../record/decoding.ts"
import type { Handler } from "../settings/bindingDefinition.ts"
import type { DeliveryContext, StartGate } from "../slots/concurrencySlots.ts"
import * as PausedClock from "../slots/pausedClock.ts"
import { type ConsumerContext, reportCall, reportStarted, spentMillis } from "./consumerContext.ts"

export type Transactional<R> = Extract<Handler<R>, { readonly _tag: "Transactional" }>

export interface Run<R> {
  readonly context: ConsumerContext<R>
  readonly handler: Transactional<R>
  readonly partition: Partition
  readonly producer: TransactionalProducer
  readonly receivedMillis: number
  /** The transaction machinery failed: what it did is unknown until the producer is made anew. */
  readonly onBroken: (error: BrokerError) => void
}

/** No record begins in a transaction that has been open so long: readers of its topics wait for its end. */
export const longestMillis = 10_000

export interface Progress {
  index: number
  undecodable: Undecodable | undefined
}

/**
 * Runs records in one transaction until one fails (the cause is the handler's) or the partition stops. Failures of the transaction itself end the
 * partition's run: they are never taken for the record's.
 */
export const inTransaction = <R>(
  run: Run<R>,
  records: ReadonlyArray<ConsumerRecord>,
  progress: Progress,
  delivery: DeliveryContext
): Effect.Effect<void, unknown, R> => {
  const { partition, context, handler } = run
  const pausedClock = PausedClock.make(context.clock, delivery)
  let failure: Cause.Cause<unknown> | undefined
  let broken: BrokerError | undefined
  const watched = (transaction: Transaction): Producer => {
    const note = (error: BrokerError) => {
      broken = refusesRecord(error) ? broken : error
    }
    const watch = <A>(effect: Effect.Effect<A, BrokerError>) =>
      pausedClock.within(Effect.tapError(effect, (error) => Effect.sync(() => note(error))))
    return {
      send: (record) => watch(transaction.send(record)),
      sendAll: (all) => watch(transaction.sendAll(all)),
      sendEach: (each, onAnswer) =>
        pausedClock.within(
          transaction.sendEach(each, (index, answer) => {
            if (Result.isFailure(answer)) note(answer.failure)
            onAnswer(index, answer)
          })
        )
    }
  }
  // Where a record would have to wait, for the breaker or a place, those before it are committed first.
  const hurried: StartGate = {
    get stopping() {
      return partition.stopping
    },
    get ending() {
      return partition.ending
    },
    get open() {
      return partition.open
    },
    mayWait: false,
    runnable: partition.runnable,
    onStop: (listener) => partition.onStop(listener)
  }
  const call = (gate: StartGate, begin: () => Effect.Effect<unknown, unknown, R>) =>
    Effect.suspend(() => {
      const beforeMillis = spentMillis(context, delivery)
      return Effect.map(Effect.exit(context.slots.within(gate, delivery, begin)), (exit) => {
        if (progress.undecodable === undefined) reportCall(context, delivery, beforeMillis)
        return exit
      })
    })
  const body = Effect.fnUntraced(function* (transaction: Transaction) {
    const current = watched(transaction)
    const openMillis = Clocks.stopwatch(context.clock)
    for (; progress.index < records.length && partition.open; progress.index++) {
      if (progress.index > 0 && openMillis() >= longestMillis) break
      const record = records[progress.index]!
      partition.current = record
      let hasBegun = false
      // Within the bounds: whatever the handler's function does itself is handling, too.
      const begin = () => {
        hasBegun = true
        reportStarted(context, partition, record)
        const invoked = handler.invoke(current, record, context.receiver, run.receivedMillis)
        if (!(invoked instanceof Undecodable)) return isolated(invoked)
        progress.undecodable = invoked
        return Effect.fail(invoked)
      }
      const exit = yield* pausedClock.except(call(progress.index === 0 ? partition : hurried, begin))
      if (!hasBegun && progress.index > 0 && !partition.stopping) break
      if (Exit.isSuccess(exit)) continue
      if (progress.undecodable !== undefined) {
        context.breaker?.release(delivery)
        return yield* Effect.fail("undecodable" as const)
      }
      failure = exit.cause
      return yield* Effect.fail("failed" as const)
    }
    const last = records[progress.index - 1]
    if (last !== undefined) yield* sendOffset(run, transaction, last.offset + 1n)
  })
  return pausedClock.within(run.producer.transaction(body)).pipe(
    Effect.catch((error) => {
      if (typeof error !== "string") broken = error
      if (broken !== undefined) {
        run.onBroken(broken)
        return Effect.interrupt
      }
      return failure === undefined ? Effect.fail(error) : Effect.failCause(failure)
    }),
    // Its handler may have failed before the partition was given up: whoever would settle that may be gone by now.
    Effect.ensuring(Effect.sync(() => (partition.stopping ? context.breaker?.release(delivery) : undefined)))
  )
}

/** In a fiber of its own: its end, without finalizers when it meets what is no Effect, is not the end of the transaction around it. */
const isolated = <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkChild(call, { startImmediately: true }), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interrupt(fiber))
  )

/** Whether an error says something about the record or its topic; all others leave it open what the transaction did. */
export const refusesRecord = (error: BrokerError): boolean =>
  error._tag === "RecordTooLarge" ||
  error._tag === "RecordRejected" ||
  error._tag === "UnknownTopic" ||
  error._tag === "InvalidTopic" ||
  error._tag === "AuthorizationFailed"

export const sendOffset = <R>(run: Run<R>, transaction: Transaction, offset: bigint) =>
  transaction.sendOffsets(run.context.groupId, [
    { topic: run.partition.topic, partition: run.partition.partition, offset }
  ])
