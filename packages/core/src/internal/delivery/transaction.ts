/**
 * One transaction of a transactional binding: it runs records, and ends early when one of them fails or would have to wait.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type {
  ConsumerGroupMetadata,
  ConsumerSession,
  Producer,
  Transaction,
  TransactionalProducer
} from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Clocks from "../base/clocks.ts"
import type { Partition } from "../partition/partition.ts"
import { Undecodable } from "../record/decoding.ts"
import { withoutOwn } from "../record/forwardedHeaders.ts"
import type { Handler } from "../settings/bindingDefinition.ts"
import type { DeliveryContext } from "../slots/deliveryContext.ts"
import type { StartGate } from "../slots/startGate.ts"
import { type ConsumerContext, reportCall, reportStarted } from "./consumerContext.ts"
import { undecodableOf } from "./unreadable.ts"

export type Transactional<R> = Extract<Handler<R>, { readonly _tag: "Transactional" }>

/** The parts that handle a chunk of one partition. */
export interface Run<R> {
  readonly context: ConsumerContext<R>
  readonly handler: Transactional<R>
  readonly partition: Partition
  readonly session: Pick<ConsumerSession, "groupMetadata">
  readonly producer: TransactionalProducer
  readonly receivedMillis: number
  /** The machinery of a transaction failed. Nobody knows whether it was committed until there is a new producer. */
  readonly onBroken: (error: BrokerError) => void
}

/** No record begins in a transaction that has been open for this long: readers of its topics wait for its end. */
export const longestMillis = 10_000

/** How far a transaction has come. */
export interface Progress {
  /** The index of the record in work. */
  index: number
}

/**
 * Runs records in one transaction until one fails (the cause is the handler's) or the partition stops. A failure of the transaction itself ends the
 * partition's run, and is never taken for the record's. The delivery's clock runs only while a handler does.
 */
export const inTransaction = <R>(
  run: Run<R>,
  records: ReadonlyArray<ConsumerRecord>,
  progress: Progress,
  delivery: DeliveryContext
): Effect.Effect<void, unknown, R> => {
  let failure: Cause.Cause<unknown> | undefined
  let broken: BrokerError | undefined
  const onSendFailed = (error: BrokerError) => {
    broken = refusesRecord(error) ? broken : error
  }
  const body = Effect.fnUntraced(function* (transaction: Transaction) {
    const producer = handlersProducer(transaction, delivery, onSendFailed)
    failure = yield* callHandlers(run, records, progress, delivery, producer)
    if (failure !== undefined) return yield* Effect.fail("failed" as const)
    const last = records[progress.index - 1]
    if (last !== undefined) yield* sendOffset(run, transaction, last.offset + 1n)
  })
  return Effect.catch(delivery.clock.whilePaused(run.producer.transaction(body)), (error) => {
    if (error !== "failed") broken = error
    if (broken !== undefined) {
      run.onBroken(broken)
      return Effect.interrupt
    }
    return failure === undefined ? Effect.fail(error) : Effect.failCause(failure)
  })
}

/** The producer that a handler gets: it publishes no header of the connector, and what the broker takes for a send uses up no processing budget. */
const handlersProducer = (
  transaction: Transaction,
  delivery: DeliveryContext,
  onSendFailed: (error: BrokerError) => void
): Producer => {
  const observed = <A>(effect: Effect.Effect<A, BrokerError>) =>
    delivery.clock.whilePaused(Effect.tapError(effect, (error) => Effect.sync(() => onSendFailed(error))))
  return {
    send: (record) => observed(transaction.send(withoutOwn(record))),
    sendAll: (all) => observed(transaction.sendAll(all.map(withoutOwn))),
    sendEach: (each, onAnswer) =>
      delivery.clock.whilePaused(
        transaction.sendEach(each.map(withoutOwn), (index, answer) => {
          if (Result.isFailure(answer)) onSendFailed(answer.failure)
          onAnswer(index, answer)
        })
      )
  }
}

/** Calls the handler for record after record. Answers the cause of a record that failed, or undefined. */
const callHandlers = Effect.fnUntraced(function* <R>(
  run: Run<R>,
  records: ReadonlyArray<ConsumerRecord>,
  progress: Progress,
  delivery: DeliveryContext,
  producer: Producer
) {
  const { partition, context } = run
  const openMillis = Clocks.stopwatch(context.clock)
  const hurried = withoutWaiting(partition)
  for (; progress.index < records.length && partition.open; progress.index++) {
    // The trial call of a half-open breaker is for the first record alone (ruling 72).
    if (progress.index > 0 && (delivery.isTrial || openMillis() >= longestMillis)) break
    const record = records[progress.index]!
    partition.current = record
    let hasBegun = false
    // The handler's function runs with slot and permit, like the effect that it answers.
    const begin = () => {
      hasBegun = true
      reportStarted(context, partition, record)
      const invoked = run.handler.invoke(producer, record, context.receiver, run.receivedMillis)
      return invoked instanceof Undecodable ? Effect.fail(invoked) : isolated(invoked)
    }
    // A record that would have to wait for the breaker or a slot ends the transaction, so that those before it are committed first.
    const gate = progress.index === 0 ? partition : hurried
    const exit = yield* delivery.clock.whileRunning(callOnce(run, delivery, gate, begin))
    if (!hasBegun && progress.index > 0 && !partition.stopping) break
    if (Exit.isFailure(exit)) return exit.cause
  }
  return undefined
})

const callOnce = <R>(
  { context }: Run<R>,
  delivery: DeliveryContext,
  gate: StartGate,
  begin: () => Effect.Effect<unknown, unknown, R>
) =>
  Effect.suspend(() => {
    const beforeMillis = delivery.clock.spentMillis()
    const call = Effect.onExit(delivery.admit(gate, begin), (exit) => Effect.sync(() => delivery.callEnded(exit)))
    return Effect.map(Effect.exit(call), (exit) => {
      if (Exit.isSuccess(exit) || undecodableOf(exit.cause) === undefined) reportCall(context, delivery, beforeMillis)
      // There was no call that the breaker could count.
      else delivery.releasePermit()
      return exit
    })
  })

/** The gate of a partition, for a record that must not wait. */
const withoutWaiting = (partition: Partition): StartGate => ({
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
  get current() {
    return partition.current
  },
  runnable: partition.runnable,
  onStop: (listener) => partition.onStop(listener)
})

/** Runs the call in a fiber of its own. A fiber that yields a value that is no Effect ends without its finalizers: the transaction around the call must not. */
const isolated = <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkChild(call, { startImmediately: true }), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Fiber.interrupt(fiber))
  )

/** Whether an error is about the record or its topic. After every other error nobody knows what the transaction did. */
export const refusesRecord = (error: BrokerError): boolean =>
  error._tag === "RecordTooLarge" ||
  error._tag === "RecordRejected" ||
  error._tag === "UnknownTopic" ||
  error._tag === "InvalidTopic" ||
  error._tag === "AuthorizationFailed"

/**
 * Commits an offset in the transaction, as the member that owns the partition: the group refuses one that it has put out. A member that is still in the group, in a newer
 * generation, sends the offset again. The session tells whether it is one.
 */
export const sendOffset = <R>(
  run: Run<R>,
  transaction: Transaction,
  offset: bigint,
  refused?: ConsumerGroupMetadata
): Effect.Effect<void, BrokerError> => {
  const { topic, partition, generation, metadata } = run.partition
  const at = { topic, partition, offset }
  return Effect.flatMap(run.session.groupMetadata([{ topic, partition, generation }], refused), (member) =>
    Effect.catch(
      transaction.sendOffsets(member, [metadata === undefined ? at : { ...at, metadata }]),
      (error): Effect.Effect<void, BrokerError> =>
        error._tag === "RebalanceInProgress" || error._tag === "StaleAssignment"
          ? sendOffset(run, transaction, offset, member)
          : Effect.fail(error)
    )
  )
}
