/**
 * Keeps one consumer of a binding alive: when its session dies, a new one is made, with backoff, for as long as the binding runs. The trouble of one
 * consumer stays its own (rulings 36 and 37).
 */
import { Clock, Duration, Effect, Schedule } from "effect"
import { type BrokerError, UnexpectedBrokerError } from "../../BrokerError.ts"
import * as Failure from "../failure/failure.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Consumer from "./consumer.ts"

/** What a consumer is doing, for health and snapshots. */
export interface ConsumerStatus {
  readonly status: "connecting" | "running" | "crashed"
  readonly sinceMillis: number
  /** While it has a session. */
  readonly consumer: Consumer.Consumer | undefined
  /** Whether it has ever been a member of its group. */
  readonly hasRun: boolean
  /** Why it crashed last; undefined while it is running. */
  readonly error: BrokerError | undefined
  /** Crashes without a minute of running in between. */
  readonly crashes: number
}

/** After 1 s, doubling up to 30 s. */
const restarts = Schedule.min([Schedule.exponential("1 second", 2), Schedule.spaced("30 seconds")])

/** A session that held for so long was a good one: what ended it is a new trouble, and the waits begin anew. */
const stableMillis = 60_000

/** Runs sessions, one after the other, until interrupted. */
export const supervise = <R>(
  options: Consumer.ConsumerOptions<R>,
  onStatus: (status: ConsumerStatus) => void
): Effect.Effect<never, never, R> => {
  let current: Omit<ConsumerStatus, "sinceMillis"> = {
    ...{ status: "connecting", consumer: undefined, hasRun: false, error: undefined, crashes: 0 }
  }
  const become = (change: Partial<typeof current>) =>
    Effect.map(Clock.currentTimeMillis, (sinceMillis) => {
      current = { ...current, ...change }
      onStatus({ ...current, sinceMillis })
    })
  const session = Effect.gen(function* () {
    const consumer = yield* Consumer.make(options)
    yield* become({ consumer })
    const isMember = become({ status: "running", hasRun: true, error: undefined })
    yield* Effect.forkScoped(Effect.andThen(consumer.joined, isMember))
    return yield* consumer.run
  }).pipe(
    Effect.scoped,
    Effect.catchDefect((defect) => Effect.fail(fromDefect(defect)))
  )
  return Effect.gen(function* () {
    let nextDelay = yield* Schedule.toStep(restarts)
    while (true) {
      yield* become({ status: "connecting" })
      const startedMillis = yield* Clock.currentTimeMillis
      const error = yield* Effect.flip(session)
      const now = yield* Clock.currentTimeMillis
      const wasSteady = now - startedMillis > stableMillis
      if (wasSteady) nextDelay = yield* Schedule.toStep(restarts)
      const attempt = wasSteady ? 1 : current.crashes + 1
      yield* become({ status: "crashed", consumer: undefined, error, crashes: attempt })
      const [, delay] = yield* Effect.orDie(nextDelay(now, undefined))
      options.hub.emit({
        _tag: "SessionCrashed",
        ...BindingKey.onEvent(options.definition),
        consumer: options.index,
        error,
        attempt,
        restartInMillis: Duration.toMillis(delay)
      })
      yield* Effect.sleep(delay)
    }
  })
}

const fromDefect = (defect: unknown): BrokerError => {
  const { className, message } = Failure.fromUnknown(defect)
  return new UnexpectedBrokerError({ operation: "consume", code: className, detail: message, retryable: true })
}
