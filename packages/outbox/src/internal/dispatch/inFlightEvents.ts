/**
 * The events of a dispatcher from their queue to their mark, by id. An event that arrives by the hot and by the cold path is let in
 * once (outbox seed §9, ruling 65).
 */
import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { ConditionVariable } from "../base/conditionVariable.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import type { Source } from "./fairQueue.ts"

/** The claims of this process. Claims of events in flight are renewed at a third of `lockTimeout`. */
export interface ClaimLocking {
  /** Unique per running process, 1 to 128 characters. */
  readonly owner: string
  /** After this long without renewal, another process may take the row. Above 0. */
  readonly lockTimeout: Duration.Input
}

/** An event in flight. */
export interface InFlightEvent {
  readonly envelope: EventEnvelope
  readonly source: Source
  /** Failed deliveries before this one. */
  readonly attempts: number
  /** The row's address as it was read, if the event was polled: see `PolledEvent`. */
  readonly rowAddress: string | undefined
  /** The earliest time at which the claim may have been taken or last renewed, on the monotonic clock. Without claims it means nothing. */
  claimedAtNanos: bigint
  /** Whether its mark may be in the database already, so that a poll may read the row as it is after it. */
  isBeingMarked: boolean
}

export class InFlightEvents {
  /**
   * Everything queued or being handled. An event that finishes during a poll stays, as the number of its failed deliveries, until all
   * polls of that moment have ended: they may have read its row before the mark.
   */
  readonly #events = new Map<string, InFlightEvent | number>()
  readonly #finishedDuringPoll = new Set<string>()
  readonly #idle = new ConditionVariable()
  #polls = 0
  #pollBeganNanos: bigint | undefined

  /** Waits until nothing is queued or being handled. */
  readonly awaitIdle: Effect.Effect<void> = this.#idle.await(() => this.size === 0)

  get size(): number {
    return this.#events.size - this.#finishedDuringPoll.size
  }

  /** When the present poll began: what it claims, it may have claimed then. Undefined while there is none. */
  get pollBeganNanos(): bigint | undefined {
    return this.#pollBeganNanos
  }

  get isPolling(): boolean {
    return this.#polls > 0
  }

  /** The events that have not finished. */
  get unfinished(): ReadonlyArray<InFlightEvent> {
    return [...this.#events.values()].filter((event) => typeof event !== "number")
  }

  /**
   * `unknown`: not here. `inFlight`: queued or being handled. `marking`: its mark is on its way, and may be in the database. `finished`: marked since a
   * poll began, and this is the row as it was before the mark. A row with another number of failed deliveries was read after the mark, and is unknown.
   */
  stateOf(eventId: string, attempts: number): "unknown" | "inFlight" | "marking" | "finished" {
    const known = this.#events.get(eventId)
    if (known === undefined) return "unknown"
    if (typeof known !== "number") return known.isBeingMarked ? "marking" : "inFlight"
    return known === attempts ? "finished" : "unknown"
  }

  add(event: InFlightEvent): void {
    this.#finishedDuringPoll.delete(event.envelope.eventId)
    this.#events.set(event.envelope.eventId, event)
  }

  /** Forgets an event that was marked or given up. */
  finish(event: InFlightEvent): void {
    const id = event.envelope.eventId
    // A user's tracker may have let the same event in once more; then the newer one stays.
    if (this.#events.get(id) !== event) return
    if (this.#polls === 0) this.#events.delete(id)
    else {
      this.#events.set(id, event.attempts)
      this.#finishedDuringPoll.add(id)
    }
    if (!this.#idle.isEmpty) this.#idle.notifyReady()
  }

  /** Runs a read of pending rows. An event that finishes meanwhile may still be in its result, and is not let in again. */
  whilePolling<A, E, R>(poll: Effect.Effect<A, E, R>, clock: Clock.Clock, onEnd: () => void): Effect.Effect<A, E, R> {
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        this.#polls++
        this.#pollBeganNanos ??= clock.monotonicTimeNanosUnsafe()
      }),
      () => poll,
      () =>
        Effect.sync(() => {
          this.#polls--
          if (this.#polls === 0) {
            this.#pollBeganNanos = undefined
            for (const id of this.#finishedDuringPoll) this.#events.delete(id)
            this.#finishedDuringPoll.clear()
          }
          onEnd()
        })
    )
  }
}
