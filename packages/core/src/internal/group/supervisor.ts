/**
 * Keeps one consumer of a binding alive: it replaces a failed session by a new one, with backoff, while the binding runs. A failure of one consumer does not affect
 * the others (rulings 36 and 37).
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { BrokerError } from "../../BrokerError.ts"
import { restartBackoff } from "../base/restartBackoff.ts"
import * as Defect from "../failure/defect.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Consumer from "./consumer.ts"

/** The status of a consumer, for health and snapshots. */
export interface ConsumerStatus {
  readonly status: "connecting" | "running" | "crashed" | "fenced"
  readonly sinceMillis: number
  /** Set while the consumer has a session. */
  readonly consumer: Consumer.Consumer | undefined
  /** Whether the consumer has ever been a member of its group. */
  readonly hasRun: boolean
  /** The error of the last crash; undefined while the consumer is running. */
  readonly error: BrokerError | undefined
  /** Crashes in a row, without a minute of running in between. */
  readonly crashes: number
}

/** The status of a consumer that has not run yet. */
export const connecting = (sinceMillis: number): ConsumerStatus => ({
  ...{ status: "connecting", sinceMillis, consumer: undefined, hasRun: false, error: undefined, crashes: 0 }
})

/** A session that lasted this long counts as stable: its failure is a new one, and the backoff starts again. */
const stableMillis = 60_000

/** Runs sessions one after the other until it is interrupted. */
export const supervise = <R>(
  options: Consumer.ConsumerOptions<R>,
  onStatus: (status: ConsumerStatus) => void
): Effect.Effect<never, never, R> => {
  let current: Omit<ConsumerStatus, "sinceMillis"> = connecting(0)
  const setStatus = (change: Partial<typeof current>) =>
    Effect.map(Clock.currentTimeMillis, (sinceMillis) => {
      current = { ...current, ...change }
      onStatus({ ...current, sinceMillis })
    })
  const session = Effect.gen(function* () {
    const consumer = yield* Consumer.make(options)
    yield* setStatus({ consumer })
    const isMember = setStatus({ status: "running", hasRun: true, error: undefined })
    yield* Effect.forkScoped(Effect.andThen(consumer.joined, isMember))
    return yield* consumer.run
  }).pipe(
    Effect.scoped,
    Effect.catchDefect((defect) => Effect.fail(Defect.toBrokerError("consume", defect)))
  )
  return Effect.gen(function* () {
    let nextDelay = yield* Schedule.toStep(restartBackoff)
    while (true) {
      yield* setStatus({ status: "connecting" })
      const startedMillis = yield* Clock.currentTimeMillis
      const error = yield* Effect.flip(session)
      if (error._tag === "InstanceFenced") {
        // A member that joins under the name again fences the process that has it now, and the two would take it from each other for ever (ruling 81).
        yield* setStatus({ status: "fenced", consumer: undefined, error })
        const { definition, index, hub } = options
        hub.emit({ _tag: "ConsumerFenced", ...BindingKey.onEvent(definition), consumer: index, error })
        return yield* Effect.never
      }
      const now = yield* Clock.currentTimeMillis
      const wasStable = now - startedMillis > stableMillis
      if (wasStable) nextDelay = yield* Schedule.toStep(restartBackoff)
      const attempt = wasStable ? 1 : current.crashes + 1
      yield* setStatus({ status: "crashed", consumer: undefined, error, crashes: attempt })
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
