/** A worker of ordered delivery: works through one lane at a time, and what becomes of its lane when its fiber dies. */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { CallListener } from "../delivery/callListener.ts"
import type { OutboxEvent } from "../store/rows.ts"
import type { BucketLease } from "./bucketLeases.ts"
import type { Lane, Lanes } from "./lanes.ts"

/** The most events of one aggregate that a worker handles before other aggregates get their turn. */
const laneBatch = 100

/** An event in memory, with its aggregate and the lease that it was read under. */
export interface InFlightEvent {
  readonly event: OutboxEvent
  readonly key: string
  readonly lease: BucketLease
  /** Its listener runs or has run. */
  started: boolean
  /** Its bucket was handed over while it was in flight: it is marked under its row lock. */
  handedOver: boolean
}

/** The decisions about events, which the worker leaves to the delivery. */
interface Decisions {
  /** False when the event may not be started any more. It has left memory then. */
  readonly startable: (lane: Lane<InFlightEvent>, item: InFlightEvent) => boolean
  readonly succeeded: (item: InFlightEvent) => void
  readonly failed: (lane: Lane<InFlightEvent>, item: InFlightEvent, cause: Cause.Cause<unknown>) => Effect.Effect<void>
  /** As `failed`, for an event that was started before its predecessor had ended. */
  readonly failedBehind: Decisions["failed"]
  /** Waits while too many marks are queued. */
  readonly awaitCapacity: Effect.Effect<void>
}

interface Parts {
  readonly lanes: Lanes<InFlightEvent>
  readonly decisions: Decisions
  readonly callListener: CallListener
  /** The most events of one lane that are handled at once. */
  readonly pipelining: number
  /** Whether no more events are accepted. */
  readonly isClosing: () => boolean
}

export class LaneWorker {
  readonly #parts: Parts
  /** The lane and the event in work. A fiber may die without finalizers, and then the lane would stop. */
  #lane: Lane<InFlightEvent> | undefined
  #item: InFlightEvent | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Handles one lane after the other until the delivery closes and the lanes are empty. */
  readonly run: Effect.Effect<void> = Effect.suspend(() => {
    const { isClosing, lanes } = this.#parts
    return Effect.whileLoop({
      while: () => !isClosing() || lanes.hasWork,
      body: () => {
        const lane = lanes.take()
        return lane === undefined ? lanes.awaitReady : this.#runLane(lane)
      },
      step: () => {}
    })
  })

  /** After the worker's fiber died: the event whose listener it ran has failed, and its lane goes on. */
  readonly repair = (cause: Cause.Cause<unknown>): Effect.Effect<"restart" | "backOff"> =>
    Effect.suspend(() => {
      const lane = this.#lane
      const item = this.#item
      this.#lane = undefined
      this.#item = undefined
      if (lane === undefined) return Effect.succeed("backOff")
      const failed = item === undefined ? Effect.void : this.#parts.decisions.failed(lane, item, cause)
      const laneDone = Effect.sync(() => this.#parts.lanes.done(lane))
      return Effect.as(Effect.andThen(failed, laneDone), item === undefined ? "backOff" : "restart")
    })

  #runLane(lane: Lane<InFlightEvent>): Effect.Effect<void> {
    let left = laneBatch
    this.#lane = lane
    const step = () =>
      this.#parts.pipelining > 1 ? this.#handleTogether(lane) : this.#handle(lane, lane.events.shift()!)
    return Effect.flatMap(
      Effect.whileLoop({ while: () => left-- > 0 && lane.events.length > 0, body: step, step: () => {} }),
      () => {
        this.#lane = undefined
        this.#parts.lanes.done(lane)
        return Effect.void
      }
    )
  }

  #handle(lane: Lane<InFlightEvent>, item: InFlightEvent): Effect.Effect<void> {
    const { callListener, decisions } = this.#parts
    if (!decisions.startable(lane, item)) return Effect.void
    this.#item = item
    return Effect.matchCauseEffect(callListener(item.event.envelope), {
      onSuccess: () => {
        this.#item = undefined
        decisions.succeeded(item)
        return decisions.awaitCapacity
      },
      onFailure: (cause) => {
        this.#item = undefined
        return decisions.failed(lane, item, cause)
      }
    })
  }

  /**
   * Handles several events of one lane at once, started in order, each in a fiber of its own. An event that succeeded behind a failed
   * one is done. An event that failed behind a failed one is read again in its order.
   */
  #handleTogether(lane: Lane<InFlightEvent>): Effect.Effect<void> {
    const { callListener, decisions, pipelining } = this.#parts
    const items = lane.events.splice(0, pipelining).filter((item) => decisions.startable(lane, item))
    return Effect.forEach(items, (item) =>
      Effect.forkChild(callListener(item.event.envelope), { startImmediately: true })
    ).pipe(
      Effect.flatMap((fibers) => Effect.forEach(fibers, Fiber.await)),
      Effect.flatMap((exits) =>
        Effect.forEach(items, (item, i) => this.#endTogether(lane, item, exits[i]!), { discard: true })
      ),
      Effect.andThen(decisions.awaitCapacity)
    )
  }

  #endTogether(lane: Lane<InFlightEvent>, item: InFlightEvent, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> {
    const { decisions } = this.#parts
    if (Exit.isSuccess(exit)) return Effect.sync(() => decisions.succeeded(item))
    return decisions.failedBehind(lane, item, exit.cause)
  }
}
