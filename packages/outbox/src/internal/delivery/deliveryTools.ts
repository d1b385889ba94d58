/** The tools that every part of an outbox is built with: clock, guarded metrics, guard, and supervisor. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as MetricsExporter from "../../MetricsExporter.ts"
import { Guard } from "../base/guard.ts"
import { monitorOf } from "../base/monitor.ts"
import { type Supervision, supervise } from "../base/supervisor.ts"
import { type GuardedExporter, guardedExporter } from "./guardedExporter.ts"

export interface DeliveryTools {
  readonly clock: Clock.Clock
  readonly guard: Guard
  readonly metrics: GuardedExporter
  /** Runs a long-lived fiber under the supervisor. */
  readonly supervise: (
    name: string,
    effect: Effect.Effect<unknown, unknown>,
    supervision?: Supervision
  ) => Effect.Effect<void>
}

/** The tools for the parts of this store's outbox. */
export const makeDeliveryTools = (store: { readonly names: object }): Effect.Effect<DeliveryTools> =>
  Effect.gen(function* () {
    const monitor = monitorOf(store)
    const clock = yield* Clock.Clock
    const guard = new Guard(monitor, clock, yield* Effect.context<never>())
    const metrics = guardedExporter(yield* MetricsExporter.Current, guard)
    return {
      clock,
      guard,
      metrics,
      supervise: (name, effect, supervision) =>
        supervise({ ...supervision, name, monitor, onDeath: metrics.incrementFiberDeath }, effect)
    }
  })
