/**
 * ALERT_AND_STORE: one fiber that calls the user's handler for each stored dead letter, behind a bounded queue, so that nothing waits for it.
 */
import { type Cause, Effect, Exit, Fiber, Option, Queue, Schema, type Scope, Stream } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as Failure from "../failure/failure.ts"
import type { OnEvent } from "./strategyEvents.ts"

export interface Options<R> {
  readonly handler: (letter: DeadLetterRecord.DeadLetterRecord) => Effect.Effect<unknown, unknown, R>
  readonly timeoutMillis: number
  readonly onEvent: OnEvent
}

/** Tells the handler of a record that is stored. Never waits. */
export type OnStored = (record: ConsumerRecord) => void

const mostWaiting = 1_000

/** How long the end of the binding waits for alerts that are still to be given. */
const closeMillis = 5_000

/** An alert handler was cut off. */
class AlertTimedOut extends Schema.TaggedError<AlertTimedOut>()("AlertTimedOut", { millis: Schema.Number }) {
  override get message(): string {
    return `The alert handler did not end within ${this.millis} ms and was interrupted.`
  }
}

export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<OnStored, never, R | Scope.Scope> {
  const waiting = yield* Queue.make<ConsumerRecord, Cause.Done>({ capacity: mostWaiting, strategy: "dropping" })
  const alerts = Stream.runForEach(Stream.fromQueue(waiting), (record) => alert(options, DeadLetterRecord.read(record)))
  const worker = yield* Effect.forkScoped(alerts)
  // Runs before the worker is interrupted.
  yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(waiting), awaitAtMost(Fiber.await(worker), closeMillis)))
  return (record) => {
    if (!Queue.offerUnsafe(waiting, record)) options.onEvent({ _tag: "AlertDropped" })
  }
})

/** In a fiber of its own, so that even a handler that resists interruption cannot hold up the next alert. */
const alert = Effect.fnUntraced(function* <R>(
  { handler, timeoutMillis, onEvent }: Options<R>,
  letter: DeadLetterRecord.DeadLetterRecord
) {
  const calling = yield* Effect.forkChild(Effect.suspend(() => handler(letter)))
  const ended = yield* Effect.timeoutOption(Fiber.await(calling), timeoutMillis)
  if (Option.isNone(ended)) {
    calling.interruptUnsafe()
    onEvent({ _tag: "AlertFailed", letter, failure: Failure.fromUnknown(new AlertTimedOut({ millis: timeoutMillis })) })
  } else if (Exit.isFailure(ended.value)) {
    onEvent({ _tag: "AlertFailed", letter, failure: failureOf(ended.value.cause) })
  }
})

const failureOf = (cause: Cause.Cause<unknown>): Failure.Failure =>
  Failure.fromCause(cause) ?? Failure.fromUnknown(new Error("The alert handler interrupted itself."))
