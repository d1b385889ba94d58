/**
 * The operator's verbs on dead events, by the words of dead letters: groups, list, show, plan, apply, receipt, replay. Every failure of the database is an error, so that a tool may
 * rely on an empty answer. `DeadEventManager` is for programs that go on without an answer.
 *
 * ```ts
 * import { DeadEventOperator } from "@eventbus/outbox"
 * import { Console, Effect } from "effect"
 *
 * export const replayLargestGroup = Effect.gen(function* () {
 *   const operator = yield* DeadEventOperator.DeadEventOperator
 *   const { groups } = yield* operator.groups
 *   const plan = yield* operator.plan({
 *     action: "replay",
 *     select: { groups: groups.slice(0, 1).map(({ fingerprint }) => fingerprint) },
 *     reason: "INC-1204: the gateway is back"
 *   })
 *   yield* Console.log(`${plan.count} events`, plan.events.slice(0, 10))
 *   return yield* operator.apply(plan)
 * })
 * ```
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as DeadEvents from "./DeadEvents.ts"
import { isEventId } from "./internal/base/envelopeChecks.ts"
import { logInfo } from "./internal/base/log.ts"
import { checkOptions, problemsOf } from "./internal/base/options.ts"
import { boundedStatements } from "./internal/operator/boundedStatements.ts"
import { deadEventGroups } from "./internal/operator/deadEventGroups.ts"
import { eachDeadEvent, filterOf, toDeadEvent } from "./internal/operator/deadEventScan.ts"
import { deathsOf, fatesOf, receiptOf } from "./internal/operator/fates.ts"
import { planMaking } from "./internal/operator/planMaking.ts"
import { discarding, replaying } from "./internal/operator/planWork.ts"
import { planIssues, queryIssues, reason as reasonKind, requestIssues } from "./internal/operator/requestChecks.ts"
import type { DeadEventStatements } from "./internal/store/contract.ts"
import { DeadEventPlanStale, InvalidOutboxConfig, type OutboxStoreError } from "./OutboxError.ts"
import { deadEventOperator as range } from "./OutboxRanges.ts"
import { OutboxStore, toOutboxEvents } from "./OutboxStore.ts"

/** `InvalidOutboxConfig`: an argument that is not allowed, named by its path; nothing was asked of the database. `OutboxStoreError`: the database refuses, or does not answer. */
export type Failure = InvalidOutboxConfig | OutboxStoreError

/** Deals with the dead events of one outbox. */
export class DeadEventOperator extends Context.Service<
  DeadEventOperator,
  {
    /** All dead events by the reason of their failure. Reads every dead row once, without payloads. */
    readonly groups: Effect.Effect<DeadEvents.GroupReport, OutboxStoreError>
    /** A page of dead events, in insertion order. */
    readonly list: (query?: DeadEvents.ListQuery) => Effect.Effect<DeadEvents.DeadEventPage, Failure>
    /** One dead event in full, decoded as far as possible. Undefined when no dead event has the id. */
    readonly show: (eventId: string) => Effect.Effect<DeadEvents.DeadEventDetail | undefined, OutboxStoreError>
    /** Makes a plan: says which events it would take, and changes nothing. */
    readonly plan: (request: DeadEvents.PlanRequest) => Effect.Effect<DeadEvents.Plan, Failure>
    /**
     * Works on a plan until it is done or stops itself. Fails with `DeadEventPlanStale`, and does nothing, when one of its events is no longer dead by the same death. Two calls at once replay
     * each event once. After an interruption or a failure the receipt tells what was done; the rest needs a new plan.
     */
    readonly apply: (
      plan: DeadEvents.Plan,
      options?: DeadEvents.ApplyOptions
    ) => Effect.Effect<DeadEvents.ApplyReport, Failure | DeadEventPlanStale>
    /** The fate of the events of a plan by now. */
    readonly receipt: (plan: DeadEvents.Plan) => Effect.Effect<DeadEvents.Receipt, Failure>
    /** Replays one dead event at once. `reason` goes to the log. False, when no dead event has the id. */
    readonly replay: (eventId: string, reason: string) => Effect.Effect<boolean, Failure>
  }
>()("@eventbus/outbox/DeadEventOperator") {}

/** Settings of `make` and `layer`. */
export interface Options {
  /** The longest time of one statement, above 0. Default 30 seconds. */
  readonly statementTimeout?: Duration.Input
}

/** The operator of the store's dead events. Fails with `InvalidOutboxConfig` for wrong settings, and for a store without the statements of an operator. */
export const make: (
  options?: Options
) => Effect.Effect<DeadEventOperator["Service"], InvalidOutboxConfig, OutboxStore> = Effect.fnUntraced(function* (
  options: Options = {}
) {
  yield* checkOptions("DeadEventOperator", [problemsOf(options, { statementTimeout: range.statementTimeout })])
  const { deadEvents, names } = yield* OutboxStore
  if (deadEvents === undefined) {
    const issue = { path: "store.deadEvents", found: "nothing", allowed: "the statements of an operator" }
    return yield* new InvalidOutboxConfig({ component: "DeadEventOperator", issues: [issue] })
  }
  const statements = boundedStatements(deadEvents, options.statementTimeout ?? "30 seconds")
  const checked = (call: string, issues: InvalidOutboxConfig["issues"]) =>
    checkOptions(`DeadEventOperator.${call}`, [issues])

  const receipt = (plan: DeadEvents.Plan) =>
    Effect.suspend(() => Effect.map(fatesOf(statements, deathsOf(plan)), (fates) => receiptOf(plan, fates)))

  return DeadEventOperator.of({
    groups: deadEventGroups(statements),
    list: (query = {}) => Effect.andThen(checked("list", queryIssues(query)), pageOf(statements, query)),
    show: (eventId) => detailOf(statements, eventId),
    plan: (request) =>
      Effect.andThen(checked("plan", requestIssues(request)), planMaking(statements, names.table, request)),
    receipt: (plan) => Effect.andThen(checked("receipt", planIssues(plan, names.table)), receipt(plan)),
    apply: Effect.fnUntraced(function* (plan, { begun } = {}) {
      yield* checked("apply", planIssues(plan, names.table))
      const { id, count, action, reason } = plan
      const { untouched } = yield* receipt(plan)
      if (untouched < count) return yield* new DeadEventPlanStale({ id, count, changed: count - untouched })
      yield* logInfo(`outbox: plan ${id} begins to ${action} ${count} dead events: ${reason}`)
      if (begun !== undefined) yield* Deferred.succeed(begun, undefined)
      const { dealtWith, stopped } = yield* (action === "discard" ? discarding : replaying)(statements, plan)
      yield* logInfo(`outbox: plan ${id}, ${dealtWith} dead events dealt with, ${stopped ?? "done"}`)
      const state = stopped === undefined ? "done" : "stopped"
      return { ...(yield* receipt(plan)), state, stateReason: stopped, dealtWith }
    }),
    replay: Effect.fnUntraced(function* (eventId, reason) {
      yield* checked("replay", reasonKind("reason", reason))
      const row = yield* deadRowOf(statements, eventId)
      if (row === undefined || !(yield* statements.replay(row))) return false
      yield* logInfo(`outbox: dead event ${eventId} is replayed: ${reason}`)
      return true
    })
  })
})

/** The operator of the store's dead events, as a layer. */
export const layer = (options?: Options): Layer.Layer<DeadEventOperator, InvalidOutboxConfig, OutboxStore> =>
  Layer.effect(DeadEventOperator, make(options))

const pageOf = Effect.fnUntraced(function* (statements: DeadEventStatements, query: DeadEvents.ListQuery) {
  const { group, after = "0", limit = 50 } = query
  const events: Array<DeadEvents.DeadEvent> = []
  const select = { ...filterOf(query), ...(group === undefined ? {} : { groups: [group] }) }
  yield* eachDeadEvent(statements, select, Number(after), (event) => events.push(event) <= limit)
  const shown = events.slice(0, limit)
  return { events: shown, next: events.length > limit ? String(shown.at(-1)?.seq) : undefined }
})

const deadRowOf = (statements: DeadEventStatements, eventId: string) =>
  isEventId(eventId)
    ? Effect.map(statements.page({ eventIds: [eventId] }, 1, 0), ([row]) => row)
    : Effect.succeed(undefined)

const detailOf = Effect.fnUntraced(function* (statements: DeadEventStatements, eventId: string) {
  const row = yield* deadRowOf(statements, eventId)
  const found = row === undefined ? undefined : yield* statements.event(eventId)
  if (row === undefined || found === undefined) return undefined
  return toOutboxEvents([found]).map(({ envelope, unreadable }) => ({
    ...toDeadEvent(row),
    envelope,
    ...(unreadable === undefined ? {} : { unreadable })
  }))[0]
})
