/** The log lines of a consumer, in the words that a binding on Kafka has for them: its start and its stop, and each message that was not handled. */
import type { DeadLetterReason, Failure } from "@eventbus/core/Failure"
import * as Failures from "@eventbus/core/Failures"
import * as LogLine from "@eventbus/core/LogLine"
import type { MessageConsumer } from "@eventbus/messaging/MessageConsumer"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import type { Reading } from "./session.ts"

/** A message whose copy is confirmed. */
export interface Copied {
  /** Where it was sent first. */
  readonly topic: string
  readonly id: string
  /** Calls of the handler so far. */
  readonly attempts: number
  readonly failure: Failure
  /** The queue or the topic that the copy is in. */
  readonly to: string
}

export interface ConsumerLines {
  readonly started: Effect.Effect<void>
  readonly stopping: Effect.Effect<void>
  /** A message waits for its next attempt, so many milliseconds. */
  readonly routed: (copied: Copied, wait: number) => Effect.Effect<void>
  readonly deadLettered: (copied: Copied, reason: DeadLetterReason) => Effect.Effect<void>
  /** Says how many lines were left out, if any were. */
  readonly stopped: Effect.Effect<void>
}

const cluster = "RABBITMQ"

/** The lines of one consumer: at most 20 a second about messages, as of a binding. */
export const makeConsumerLines = (
  consumer: Pick<MessageConsumer<unknown>, "name" | "groupId">,
  plans: ReadonlyArray<Reading<unknown>>,
  maxAttempts: number
): Effect.Effect<ConsumerLines> =>
  Effect.gen(function* () {
    const { name, groupId } = consumer
    const annotations = { cluster, bindingName: name, consumerGroup: groupId }
    const run = Effect.runForkWith(yield* Effect.context())
    const rateLimit = LogLine.rateLimit(
      (_, count) => run(Effect.annotateLogs(LogLine.warning(LogLine.leftOutText(count)), annotations)),
      yield* Clock.Clock
    )
    const about = ({ topic, id, failure, attempts, to }: Copied, ends: string, rest: string, trace?: Error) => {
      const line = `Record ${ends} ${to}${LogLine.attemptsText(attempts, maxAttempts)}${rest}, message ${id} of '${topic}': ${Failures.failureText(failure)}`
      const log = trace === undefined ? LogLine.warning(line) : LogLine.warning(line, Cause.die(trace))
      return Effect.annotateLogs(log, { ...annotations, topic })
    }
    const limited = (line: () => Effect.Effect<void>) =>
      Effect.flatMap(LogLevel.isEnabled("Warn"), (isEnabled) =>
        isEnabled && rateLimit.allows({ cluster, binding: name }) ? line() : Effect.void
      )
    const reads = plans.map(planText).join(". ")
    return {
      started: Effect.annotateLogs(LogLine.info(`Consumer '${name}' is RUNNING. ${reads}`), annotations),
      stopping: Effect.annotateLogs(
        LogLine.info(
          `Consumer '${name}' is DESTROYED, was RUNNING; no more records begin, and those in work end first`
        ),
        annotations
      ),
      routed: (copied, wait) =>
        limited(() =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            about(copied, "routed to", `, next attempt at ${new Date(now + wait).toISOString()}`)
          )
        ),
      deadLettered: (copied, reason) =>
        limited(() => about(copied, "dead-lettered to", ` (${reason})`, Failures.printable(copied.failure))),
      stopped: Effect.sync(rateLimit.flush)
    }
  })

/** `It reads 'orders', retries after 1s, 2s and sends dead letters to 'orders-dlq'`. */
const planText = ({ topic, waits, letters }: Reading<unknown>): string => {
  const after = waits.map((wait) => Duration.format(Duration.millis(wait))).join(", ")
  const retries = waits.length === 0 ? "has no retry queues" : `retries after ${after}`
  return `It reads '${topic}', ${retries} and sends dead letters to '${letters}'`
}
