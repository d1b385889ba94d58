/**
 * The commands that start, stop and destroy a binding (connector seed §4.3 and §4.11).
 *
 * A command decides and writes its transition in one synchronous step. Slow work (draining, joining) follows afterwards. So commands are serialised without a
 * lock, and none holds anything while a handler runs.
 */
import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { InvalidContainerState } from "../../EventBusError.ts"
import { CurrentHandler } from "../group/currentHandler.ts"
import * as StopLimits from "../group/stopLimits.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import type { Pausing } from "./pausing.ts"
import * as Run from "./run.ts"

export type Command = Effect.Effect<void, InvalidContainerState>

/** Where a binding is in its life. Only the commands of this file change it. */
export interface Lifecycle {
  phase: "CREATED" | "STARTED" | "STOPPED" | "DESTROYED"
  /** Set from a start until its stop has ended. */
  run: Run.Run | undefined
}

export interface StartStopOptions {
  readonly lifecycle: Lifecycle
  readonly definition: BindingDefinition<unknown>
  readonly clock: Clock.Clock
  /** The scope of the binding. */
  readonly scope: Scope.Scope
  readonly pausing: Pick<Pausing, "refuse" | "begin" | "end">
  /** Publishes the state of the binding if it has changed. */
  readonly announce: Effect.Effect<void>
  readonly start: (run: Run.Run) => Effect.Effect<void>
  /** Stops handling, drains and commits within the limits. */
  readonly drain: (limits: StopLimits.StopLimits) => Effect.Effect<void>
  /** Called when a run has ended. */
  readonly onEnded: () => void
}

export interface StartStop {
  readonly start: Command
  readonly stop: Command
  readonly destroy: Command
  /** How long the parts that outlive a run may take to close after `destroy`, in milliseconds: as long as the stop has left. */
  readonly releaseMillis: () => number
}

/** Restores the interruptibility of the caller: a finalizer waits for the drain, an interrupted caller need not. */
type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export const make = (options: StartStopOptions): StartStop => {
  const { lifecycle, definition, clock, scope, pausing, announce } = options
  const { refuse } = pausing
  const key = BindingKey.of(definition)
  /** Of the latest stop. */
  let limits = StopLimits.ofStop(definition, clock)

  const awaitEnd = (run: Run.Run, restore: Restore) =>
    insideOwnHandler(key, Effect.void, restore(Deferred.await(run.ended)))

  /** Drains, commits, leaves the group and closes. When a handler of this binding gave the command, this continues in the background. */
  const finish = (run: Run.Run, restore: Restore) => {
    pausing.end()
    limits = StopLimits.ofStop(definition, clock)
    return Effect.andThen(options.drain(limits), Run.close(run, limits)).pipe(
      Effect.andThen(
        Effect.sync(() => {
          options.onEnded()
          lifecycle.run = undefined
          Deferred.doneUnsafe(run.ended, Effect.void)
        })
      ),
      Effect.uninterruptible,
      // Started at once: closing the binding's scope waits for fibers that have begun, and drops those that have not.
      Effect.forkIn(scope, { startImmediately: true }),
      Effect.andThen(awaitEnd(run, restore))
    )
  }

  /** Runs `next` once the run has ended. When a handler of this binding gave the command, this happens in the background. */
  const afterEnd = (run: Run.Run, next: Command): Command => {
    const rest = Effect.andThen(Deferred.await(run.ended), next)
    return insideOwnHandler(key, Effect.asVoid(Effect.forkIn(Effect.ignore(rest), scope)), rest)
  }

  const start: Command = Effect.suspend(() => {
    const { phase, run } = lifecycle
    if (phase !== "CREATED" && phase !== "STOPPED") return refuse("start", ["CREATED", "STOPPED"])
    if (run !== undefined) return afterEnd(run, start)
    lifecycle.phase = "STARTED"
    pausing.begin()
    const begin = Effect.flatMap(Run.make, (made) => {
      lifecycle.run = made
      return options.start(made)
    })
    return Effect.uninterruptible(Effect.andThen(begin, announce))
  })

  const stop: Command = Effect.suspend(() => {
    const { phase, run } = lifecycle
    if (phase !== "STARTED" || run === undefined) return refuse("stop", ["RUNNING", "PAUSED"])
    lifecycle.phase = "STOPPED"
    return Effect.uninterruptibleMask((restore) => Effect.andThen(announce, finish(run, restore)))
  })

  const destroy: Command = Effect.suspend(() => {
    const { phase, run } = lifecycle
    if (phase === "DESTROYED") return refuse("destroy", ["CREATED", "RUNNING", "PAUSED", "STOPPED"])
    lifecycle.phase = "DESTROYED"
    if (run === undefined) limits = StopLimits.ofStop(definition, clock)
    return Effect.uninterruptibleMask((restore) => {
      const end = run === undefined ? Effect.void : phase === "STARTED" ? finish(run, restore) : awaitEnd(run, restore)
      return Effect.andThen(announce, end)
    })
  })

  return { start, stop, destroy, releaseMillis: () => limits.release() }
}

/** Chooses `inside` when the command comes from a handler of its own binding: it must not wait for that handler. */
const insideOwnHandler = <E>(key: string, inside: Effect.Effect<void>, outside: Effect.Effect<void, E>) =>
  Effect.flatMap(CurrentHandler, (current): Effect.Effect<void, E> => (current === key ? inside : outside))
