/**
 * The strategy SCHEDULED_REPLAY: replays dead letters when the oldest is due, once a minute at most (ruling 60). Each process of the group runs it. A run that finds another
 * process's replay waits for it a while, and else leaves it to the next run.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { BrokerError } from "../../BrokerError.ts"
import type { ReplaySettings } from "../../DeadLetter.ts"
import * as Defect from "../failure/defect.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"
import type { DueReport, Replays } from "../replay/replay.ts"
import type { RunError } from "../replay/replayAttempts.ts"
import type { OnEvent } from "./strategyEvents.ts"

/** Shortest time from the start of one run to the start of the next. */
const minWaitMillis = 60_000

/** The part of the strategy that health names. */
const replaying = "scheduled replay"

/** Runs until it is interrupted. */
export const run = Effect.fnUntraced(function* (
  replays: Pick<Replays, "replayDue">,
  settings: ReplaySettings,
  onEvent: OnEvent,
  failures: Pick<OngoingFailures, "failed" | "worked">
): Effect.fn.Return<never> {
  const { cooldownMillis, batchSize } = settings
  const due = Effect.result(
    replays
      .replayDue(cooldownMillis, batchSize)
      .pipe(
        Effect.catchDefect(
          (defect): Effect.Effect<never, RunError> => Effect.fail(Defect.toBrokerError("replay", defect))
        )
      )
  )
  while (true) {
    const startedMillis = yield* Clock.currentTimeMillis
    const result = yield* due
    let wakeMillis = startedMillis + minWaitMillis
    if (Result.isSuccess(result)) {
      failures.worked(replaying)
      const { nextDueMillis, ...report } = result.success
      if (report.replayed + report.passedOver + report.refused + report.foreign.size > 0)
        onEvent({ _tag: "ScheduledReplay", report })
      wakeMillis = Math.max(wakeMillis, nextWake(result.success, startedMillis, settings))
    } else if (!isOthersTurn(result.failure)) {
      failures.failed(replaying, result.failure)
      onEvent({ _tag: "StrategyFailed", error: result.failure, retryInMillis: minWaitMillis })
    }
    yield* Effect.sleep(Math.max(0, wakeMillis - (yield* Clock.currentTimeMillis)))
  }
})

/** Another process replays. */
const isOthersTurn = (error: RunError): error is Exclude<RunError, BrokerError> =>
  error._tag === "ReplayRunning" || error._tag === "ReplayTakenOver"

/** When the next run is due. A record that is dead-lettered after the start of this run is due one cooldown after that start, at the earliest. */
const nextWake = ({ replayed, nextDueMillis }: DueReport, startedMillis: number, settings: ReplaySettings): number =>
  replayed >= settings.batchSize
    ? startedMillis
    : Math.min(nextDueMillis ?? Number.POSITIVE_INFINITY, startedMillis + settings.cooldownMillis)
