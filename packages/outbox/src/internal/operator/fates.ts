/** The fate of events that were dead by a known death. */
import * as Effect from "effect/Effect"
import type { Plan, Receipt } from "../../DeadEvents.ts"
import { DEAD, DONE, RETRY } from "../../EventStatus.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { DeadEventStatements, Death, RowState } from "../store/contract.ts"

/** `waiting`: NEW. `retrying`: it failed again, and comes again. `untouched`: still dead by the known death. */
export type Fate = "delivered" | "gone" | "deadAgain" | "waiting" | "retrying" | "untouched"

export const deathsOf = ({ events }: Plan): ReadonlyArray<Death> =>
  events.map(([eventId, diedAtMicros]) => ({ eventId, diedAtMicros }))

const rowsAtOnce = 1_000

/** The fate of each death, in their order. */
export const fatesOf = Effect.fnUntraced(function* (
  statements: DeadEventStatements,
  deaths: ReadonlyArray<Death>
): Effect.fn.Return<ReadonlyArray<Fate>, OutboxStoreError> {
  const states = new Map<string, RowState>()
  for (let at = 0; at < deaths.length; at += rowsAtOnce) {
    const ids = deaths.slice(at, at + rowsAtOnce).map(({ eventId }) => eventId)
    for (const state of yield* statements.states(ids)) states.set(state.eventId, state)
  }
  return deaths.map((death) => fateOf(death, states.get(death.eventId)))
})

const fateOf = (death: Death, state: RowState | undefined): Fate => {
  switch (state?.status) {
    case undefined:
      return "gone"
    case DONE:
      return "delivered"
    case DEAD:
      return state.diedAtMicros === death.diedAtMicros ? "untouched" : "deadAgain"
    case RETRY:
      return "retrying"
    default:
      return "waiting"
  }
}

/** The receipt of a plan, by what the table holds now. */
export const receiptOf = (plan: Plan, fates: ReadonlyArray<Fate>): Receipt => {
  const count = (fate: Fate) => fates.filter((each) => each === fate).length
  const retrying = count("retrying")
  const waiting = count("waiting") + retrying
  const untouched = count("untouched")
  const isApplied = plan.count === 0 || untouched < plan.count
  return {
    ...{ id: plan.id, action: plan.action, count: plan.count },
    ...{ delivered: count("delivered"), gone: count("gone"), deadAgain: count("deadAgain") },
    ...{ waiting, retrying, untouched, closed: isApplied && waiting === 0 }
  }
}
