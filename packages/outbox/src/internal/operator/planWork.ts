/**
 * The work on a plan. Each event is changed by a statement of its own that names its death, so that two operators who work on one plan change each event once. A replay
 * does its canary first, keeps its rate, and stops itself when too many events fail again.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Plan } from "../../DeadEvents.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { DeadEventStatements, Death } from "../store/contract.ts"
import { deathsOf, type Fate, fatesOf } from "./fates.ts"

/** The end of the work. */
export interface Ended {
  /** Events that this work changed. */
  readonly dealtWith: number
  /** Why it stopped itself; undefined when it is done. */
  readonly stopped: string | undefined
}

type Step<A> = Effect.Effect<A, OutboxStoreError>

/** Deletes the events of the plan. */
export const discarding = (statements: DeadEventStatements, plan: Plan): Step<Ended> =>
  Effect.map(Effect.filter(deathsOf(plan), statements.discard), ({ length }) => ({
    dealtWith: length,
    stopped: undefined
  }))

const mostAtOnce = 500
const lookMillis = 2_000
const canaryPollMillis = 1_000
/** Without a canary, the share says something from so many outcomes on. */
const fewestOutcomes = 20

/** Replays the events of the plan. */
export const replaying = Effect.fnUntraced(function* (
  statements: DeadEventStatements,
  plan: Plan
): Effect.fn.Return<Ended, OutboxStoreError> {
  const deaths = deathsOf(plan)
  const outcomes = new Outcomes(statements)
  let dealtWith = 0
  let lookedMillis = yield* Clock.currentTimeMillis
  for (let at = 0; at < deaths.length; ) {
    const begunMillis = yield* Clock.currentTimeMillis
    const atOnce = Math.min(mostAtOnce, plan.rate, at < plan.canary ? plan.canary - at : mostAtOnce)
    const replayed = yield* Effect.filter(deaths.slice(at, at + atOnce), statements.replay)
    outcomes.await(replayed)
    dealtWith += replayed.length
    at += atOnce
    if (at >= deaths.length) break
    const nextMillis = begunMillis + Math.ceil((atOnce * 1_000) / plan.rate)
    yield* Effect.sleep(Math.max(0, nextMillis - (yield* Clock.currentTimeMillis)))
    const nowMillis = yield* Clock.currentTimeMillis
    if (at < plan.canary || (at > plan.canary && nowMillis - lookedMillis < lookMillis)) continue
    yield* at === plan.canary ? settled(outcomes, plan.canaryWaitMillis) : outcomes.look
    lookedMillis = nowMillis
    const stopped = verdict(outcomes, plan)
    if (stopped !== undefined) return { dealtWith, stopped }
  }
  return { dealtWith, stopped: undefined }
})

/** Looks until every event has been delivered or has failed once, for this long at most. */
const settled = Effect.fnUntraced(function* (
  outcomes: Outcomes,
  waitMillis: number
): Effect.fn.Return<void, OutboxStoreError> {
  const untilMillis = (yield* Clock.currentTimeMillis) + waitMillis
  while (true) {
    yield* outcomes.look
    const leftMillis = untilMillis - (yield* Clock.currentTimeMillis)
    if (outcomes.waiting === 0 || leftMillis <= 0) return
    yield* Effect.sleep(Math.min(canaryPollMillis, leftMillis))
  }
})

const verdict = ({ delivered, failed, waiting }: Outcomes, plan: Plan): string | undefined => {
  const known = delivered + failed
  if (plan.stopAbove >= 100) return undefined
  if (plan.canary > 0 && known === 0 && waiting > 0) {
    return `none of the ${waiting} replayed events was delivered or failed within ${plan.canaryWaitMillis} ms: the outbox does not run, or its destination is down`
  }
  const isTelling = known >= (plan.canary > 0 ? 1 : fewestOutcomes)
  return isTelling && failed * 100 > plan.stopAbove * known
    ? `${failed} of ${known} events with an outcome failed again, more than ${plan.stopAbove} %`
    : undefined
}

const isDelivered = (fate: Fate): boolean => fate === "delivered" || fate === "gone"

/** The outcomes of the events that this work has replayed. */
class Outcomes {
  delivered = 0
  readonly #statements: DeadEventStatements
  #deadAgain = 0
  #retrying = 0
  #open: ReadonlyArray<Death> = []

  constructor(statements: DeadEventStatements) {
    this.#statements = statements
  }

  await(deaths: ReadonlyArray<Death>): void {
    this.#open = [...this.#open, ...deaths]
  }

  /** Events that were neither delivered nor failed again. */
  get waiting(): number {
    return this.#open.length - this.#retrying
  }

  /** Events that failed again: dead, or retried. */
  get failed(): number {
    return this.#deadAgain + this.#retrying
  }

  /** Reads the fates of the open events. */
  readonly look: Step<void> = Effect.suspend(() =>
    Effect.map(fatesOf(this.#statements, this.#open), (fates) => {
      this.delivered += fates.filter(isDelivered).length
      this.#deadAgain += fates.filter((fate) => fate === "deadAgain").length
      this.#retrying = fates.filter((fate) => fate === "retrying").length
      this.#open = this.#open.filter((_, index) => fates[index] === "waiting" || fates[index] === "retrying")
    })
  )
}
