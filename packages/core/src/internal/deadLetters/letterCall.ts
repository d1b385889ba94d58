/**
 * One call of the handler of strategy CUSTOM, in a fiber of its own and with a timeout: a handler that hangs, resists interruption or returns no Effect does not hold up
 * the records behind its own. While a call takes long, health names it.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { UnexpectedBrokerError } from "../../BrokerError.ts"
import type { TopicPartition } from "../../ConsumerRecord.ts"
import type * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import * as UserFunction from "../../UserFunction.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"

export interface Options<R> {
  readonly handler: (letter: DeadLetterRecord.DeadLetterRecord) => Effect.Effect<unknown, unknown, R>
  /** The longest time of a call. The handler is interrupted then, and has failed. */
  readonly timeoutMillis: number
  /** Told while a call takes long. */
  readonly failures: Pick<OngoingFailures, "failed" | "worked">
}

/** Most handlers end within a minute, so health names one that takes longer. */
const longMillis = 60_000

/** The function, in messages. */
const what = "the dead letter handler"

/** The handler was interrupted after its timeout. */
class LetterTimedOut extends Schema.TaggedError<LetterTimedOut>()("LetterTimedOut", { millis: Schema.Number }) {
  override get message(): string {
    return `The dead letter handler did not end within ${this.millis} ms and was interrupted.`
  }
}

/** Calls the handler. Answers how it ended; an interruption ends the call, and waits for a handler that resists it only a moment. */
export const call = Effect.fnUntraced(function* <R>(
  { handler, timeoutMillis, failures }: Options<R>,
  letter: DeadLetterRecord.DeadLetterRecord
) {
  const called = UserFunction.callEffect(what, () => handler(letter))
  const calling = yield* Effect.forkDetach(Effect.interruptible(UserFunction.runBounded(what, called)), {
    startImmediately: true
  })
  const atMost = (millis: number) => Effect.timeoutOption(Fiber.await(calling), millis)
  const waiting = Effect.gen(function* () {
    const long = Math.min(longMillis, timeoutMillis)
    const soon = yield* atMost(long)
    if (Option.isSome(soon)) return ended(failures, letter.record, soon.value)
    failures.failed(about(letter.record), hanging(letter, long))
    const late = yield* atMost(timeoutMillis - long)
    if (Option.isSome(late)) return ended(failures, letter.record, late.value)
    calling.interruptUnsafe()
    failures.worked(about(letter.record))
    return Exit.fail(new LetterTimedOut({ millis: timeoutMillis }))
  })
  return yield* Effect.onInterrupt(waiting, () => {
    // The next owner of the partition calls the handler for the letter again.
    failures.worked(about(letter.record))
    return Fiber.interrupt(calling)
  })
})

const ended = (
  failures: Options<never>["failures"],
  at: TopicPartition,
  exit: Exit.Exit<unknown, unknown>
): Exit.Exit<unknown, unknown> => {
  failures.worked(about(at))
  return exit
}

/** The part of the strategy that health names. */
const about = ({ topic, partition }: TopicPartition): string => `handler of ${topic}-${partition}`

const hanging = ({ record }: DeadLetterRecord.DeadLetterRecord, millis: number): UnexpectedBrokerError =>
  new UnexpectedBrokerError({
    operation: `Handling the dead letter ${record.topic}-${record.partition}@${record.offset}`,
    code: "HANDLER_HANGS",
    detail: `the handler has not ended for ${millis} ms`,
    retryable: true
  })
