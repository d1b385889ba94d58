/**
 * The strategy ALERT_AND_STORE: one fiber calls the user's handler for each stored dead letter. A bounded queue in front of it keeps everything else from waiting.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import type { Failure } from "../../Failure.ts"
import * as UserFunction from "../../UserFunction.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as Failures from "../failure/failure.ts"
import type { OnEvent } from "./strategyEvents.ts"

export interface Options<R> {
  readonly handler: (letter: DeadLetterRecord.DeadLetterRecord) => Effect.Effect<unknown, unknown, R>
  readonly timeoutMillis: number
  readonly onEvent: OnEvent
}

/** Queues a stored record for the alert handler. Never waits. */
export type OnStored = (record: ConsumerRecord) => void

/** Alerts that may wait. Further ones are dropped and reported. */
const queueCapacity = 1_000

/** Longest time that the end of the binding waits for queued alerts. */
const drainMillis = 5_000

/** The function, in messages. */
const what = "the alert handler"

/** The alert handler was interrupted after its timeout. */
class AlertTimedOut extends Schema.TaggedError<AlertTimedOut>()("AlertTimedOut", { millis: Schema.Number }) {
  override get message(): string {
    return `The alert handler did not end within ${this.millis} ms and was interrupted.`
  }
}

export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<OnStored, never, R | Scope.Scope> {
  const waiting = yield* Queue.make<ConsumerRecord, Cause.Done>({ capacity: queueCapacity, strategy: "dropping" })
  const alerts = Stream.runForEach(Stream.fromQueue(waiting), (record) => alert(options, DeadLetterRecord.read(record)))
  const worker = yield* Effect.forkScoped(alerts)
  // Finalizers run in reverse order: this one runs before the worker is interrupted.
  yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(waiting), awaitAtMost(Fiber.await(worker), drainMillis)))
  return (record) => {
    if (!Queue.offerUnsafe(waiting, record)) options.onEvent({ _tag: "AlertDropped" })
  }
})

/** Calls the handler in a fiber of its own, so that a handler that resists interruption holds up neither the next alert nor the end of the binding. */
const alert = Effect.fnUntraced(function* <R>(
  { handler, timeoutMillis, onEvent }: Options<R>,
  letter: DeadLetterRecord.DeadLetterRecord
) {
  const called = UserFunction.callEffect(what, () => handler(letter))
  const ended = yield* Effect.timeoutOption(Effect.exit(UserFunction.runBounded(what, called)), timeoutMillis)
  if (Option.isNone(ended)) {
    onEvent({
      _tag: "AlertFailed",
      letter,
      failure: Failures.fromUnknown(new AlertTimedOut({ millis: timeoutMillis }))
    })
  } else if (Exit.isFailure(ended.value)) {
    onEvent({ _tag: "AlertFailed", letter, failure: failureOf(ended.value.cause) })
  }
})

const failureOf = (cause: Cause.Cause<unknown>): Failure =>
  Failures.fromCause(cause) ?? Failures.fromUnknown(new Error("The alert handler interrupted itself."))
