/**
 * SCHEDULED_REPLAY: republishes dead letters when the oldest is due, once a minute at most (ruling 60). Each process of the group has one; a run that begins
 * shuts out one that still runs elsewhere, so that each record is replayed once.
 */
import { Clock, Effect, Result } from "effect"
import { type BrokerError, UnexpectedBrokerError } from "../../BrokerError.ts"
import type { ReplaySettings } from "../../DeadLetter.ts"
import * as Failure from "../failure/failure.ts"
import type { DueReport, Replays } from "./replay.ts"
import type { OnEvent } from "./strategyEvents.ts"

const leastWaitMillis = 60_000

/** Runs until it is interrupted. */
export const run = Effect.fnUntraced(function* (
  replays: Pick<Replays, "replayDue">,
  settings: ReplaySettings,
  onEvent: OnEvent
): Effect.fn.Return<never> {
  const { cooldownMillis, batchSize } = settings
  const due = Effect.result(
    replays
      .replayDue(cooldownMillis, batchSize)
      .pipe(Effect.catchDefect((defect): Effect.Effect<never, BrokerError> => Effect.fail(fromDefect(defect))))
  )
  while (true) {
    const startedMillis = yield* Clock.currentTimeMillis
    const result = yield* due
    let wakeMillis = startedMillis + leastWaitMillis
    if (Result.isSuccess(result)) {
      const { nextDueMillis, ...report } = result.success
      if (report.replayed + report.passedOver + report.refused > 0) onEvent({ _tag: "ScheduledReplay", report })
      wakeMillis = Math.max(wakeMillis, nextWake(result.success, startedMillis, settings))
    } else if (result.failure._tag !== "ProducerFenced") {
      onEvent({ _tag: "StrategyFailed", error: result.failure, retryInMillis: leastWaitMillis })
    }
    yield* Effect.sleep(Math.max(0, wakeMillis - (yield* Clock.currentTimeMillis)))
  }
})

/** What is dead-lettered after the run began is due a cooldown after that, at the earliest. */
const nextWake = ({ replayed, nextDueMillis }: DueReport, startedMillis: number, settings: ReplaySettings): number =>
  replayed >= settings.batchSize
    ? startedMillis
    : Math.min(nextDueMillis ?? Number.POSITIVE_INFINITY, startedMillis + settings.cooldownMillis)

const fromDefect = (defect: unknown): BrokerError => {
  const { className, message } = Failure.fromUnknown(defect)
  return new UnexpectedBrokerError({ operation: "replay", code: className, detail: message, retryable: true })
}
