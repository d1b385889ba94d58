/** Runs the layers of a program. */
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

declare const missing: unique symbol

/** Nothing has this type. The compile error for a program that lacks a layer shows this name with what is missing. */
export interface ProvideALayerFor<out R> {
  /** Absent from every value. */
  readonly [missing]: R
}

/**
 * Builds the layer, and keeps it until the effect is interrupted, as `Layer.launch` does. A layer that still requires something is a compile error that names it. Fails when
 * the layer cannot be built.
 *
 * ```ts
 * import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
 * import { Program } from "@eventbus/core"
 * import { Layer } from "effect"
 *
 * const Main = Layer.empty
 *
 * NodeRuntime.runMain(Program.launch(Main))
 * ```
 */
export const launch = <A, E, R>(
  layer: Layer.Layer<A, E, R> & ([R] extends [never] ? unknown : ProvideALayerFor<R>)
): Effect.Effect<never, E> => Layer.launch(layer as Layer.Layer<A, E>)
