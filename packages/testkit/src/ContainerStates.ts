/**
 * Assertions on the states of a binding's container (connector seed §10, `ContainerStateAssertions`).
 *
 * ```ts
 * import { ContainerStates } from "@eventbus/testkit"
 *
 * export const expectation = ContainerStates.expectSequence("orders", ["RUNNING", "PAUSED", "RUNNING", "STOPPED"])
 * ```
 */
import type { EventBusError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { durationText } from "./internal/trail/trailText.ts"
import { TestBus, type TimedEvent } from "./TestBus.ts"
import { Unexpected } from "./Unexpected.ts"

type State = EventBusError.ContainerState

/** Asserts the current state of a binding. Fails with `Unexpected` for another state and with `BindingNotFound` for an unknown binding. */
export const expectState = Effect.fnUntraced(function* (binding: string, state: State) {
  const found = yield* TestBus.use((bus) => bus.state(binding))
  if (found !== state) return yield* unexpected(binding, `now ${state}`, found)
})

/** Asserts all states since CREATED, in order. Fails with `Unexpected`, which lists each change with its time and pause reasons. */
export const expectSequence = Effect.fnUntraced(function* (binding: string, states: ReadonlyArray<State>) {
  const changes = yield* TestBus.use(({ events }) => Effect.map(events, changesOf(binding)))
  if (changes.map(({ to }) => to).join() !== states.join()) {
    const found = changes.map(({ to, by, atMillis }) => `${to}${by} at ${durationText(atMillis)}`).join(", ")
    return yield* unexpected(binding, states.join(", "), found === "" ? "no change" : found)
  }
})

const changesOf = (binding: string) => (events: ReadonlyArray<TimedEvent>) =>
  events.flatMap(({ atMillis, event }) => {
    if (event._tag !== "StateChanged" || event.binding !== binding) return []
    const by = event.to === "PAUSED" && event.reasons.length > 0 ? ` by ${event.reasons.join(" and ")}` : ""
    return [{ to: event.to, by, atMillis }]
  })

const unexpected = (binding: string, expected: string, found: string) =>
  Effect.fail(new Unexpected({ subject: `states of binding '${binding}'`, expected, found }))
