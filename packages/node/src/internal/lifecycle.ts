/**
 * The life of a bus: it starts and stops as often as its program likes, one after the other. It alone knows whether the bus runs.
 */
import { EventBusError } from "@eventbus/core"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { EventBusNotRunning, StartInterrupted } from "../EventBusErrors.ts"
import * as BusConfiguration from "./configuration.ts"

export interface Lifecycle<R> {
  /** Starts once; further calls answer the same promise until a stop. Waits for a stop that is under way. */
  readonly start: () => Promise<void>
  /** Stops once, also a start that is under way. Never rejects for what a consumer does. */
  readonly stop: () => Promise<void>
  /** The services while the bus runs, also while it drains. */
  readonly services: () => Context.Context<R> | undefined
  /** Whether a stop is under way, or has ended. */
  readonly isStopping: () => boolean
  /** Runs an effect with the services. Rejects with `EventBusNotRunning` where there are none. */
  readonly run: <A, E>(operation: string, effect: Effect.Effect<A, E, R>) => Promise<A>
}

interface Life<R> {
  readonly started: Promise<void>
  readonly stop: () => Promise<void>
  readonly services: () => Context.Context<R> | undefined
  readonly isStopping: () => boolean
}

/** `onStart` is called when a start begins, and what it answers when that life is over. */
export const make = <R>(layer: Layer.Layer<R, unknown>, onStart: () => () => void): Lifecycle<R> => {
  let life: Life<R> | undefined
  const services = () => life?.services()
  return {
    start: () => {
      if (life === undefined || life.isStopping()) life = begin(layer, life?.stop() ?? Promise.resolve(), onStart)
      return life.started
    },
    stop: () => life?.stop() ?? Promise.resolve(),
    services,
    isStopping: () => life?.isStopping() ?? false,
    run: (operation, effect) => {
      const context = services()
      return context === undefined
        ? Promise.reject(new EventBusNotRunning({ operation }))
        : Effect.runPromiseWith(context)(effect)
    }
  }
}

const begin = <R>(layer: Layer.Layer<R, unknown>, before: Promise<void>, onStart: () => () => void): Life<R> => {
  const scope = Scope.makeUnsafe()
  let services: Context.Context<R> | undefined
  let stopping: Promise<void> | undefined
  const build = Effect.andThen(
    Effect.promise(() => before),
    Layer.buildWithScope(layer, scope)
  )
  const building = Effect.runFork(build)
  const onOver = onStart()
  const stop = () => {
    stopping ??= Effect.runPromise(Effect.andThen(Fiber.interrupt(building), Scope.close(scope, Exit.void))).finally(
      () => {
        services = undefined
        onOver()
      }
    )
    return stopping
  }
  const started = Effect.runPromise(Fiber.await(building)).then(async (exit) => {
    if (Exit.isSuccess(exit) && stopping === undefined) {
      services = exit.value
      return
    }
    await stop()
    throw Exit.isSuccess(exit) ? new StartInterrupted() : reasonOf(exit.cause)
  })
  return { started, stop, services: () => services, isStopping: () => stopping !== undefined }
}

const reasonOf = (cause: Cause.Cause<unknown>): unknown => {
  if (Cause.hasInterruptsOnly(cause)) return new StartInterrupted()
  const error = Cause.squash(cause)
  return error instanceof EventBusError.ConfigurationValidation ? BusConfiguration.renamed(error) : error
}
