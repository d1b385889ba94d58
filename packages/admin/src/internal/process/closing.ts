/**
 * Phase 1 of the shutdown (connector seed §4.11). The layers of bindings drain before the connector itself closes, and this one closes before them.
 */
import type { Health } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as AnswersOf from "../answersOf.ts"

/** Health that says so once the scope closes. */
export const make = Effect.fnUntraced(function* (health: Effect.Effect<Health.Health>) {
  let isClosing = false
  yield* Effect.addFinalizer(() => Effect.sync(() => (isClosing = true)))
  return {
    isClosing: () => isClosing,
    health: Effect.map(health, (now) => (isClosing ? AnswersOf.closing(now) : now))
  }
})
