/**
 * Handlers that follow the plan of each record and write the history.
 */
import { type BrokerError, type DeadLetterRecord, EventBusError } from "@eventbus/core"
import { Cause, Effect, Exit } from "effect"
import type { History } from "../history/History.ts"
import { failsFor } from "../history/LetterBook.ts"
import { decoder, encoder, type Record } from "../scenario/plannedRecords.ts"
import type { BindingPlan, RecordPlan } from "../scenario/Scenario.ts"
import { behave, type HandlerError, Transient } from "./behaviour.ts"

/** State that all handlers of a run share. */
export interface HandlerContext {
  readonly history: History
  /** By binding and record id (`planKey`). */
  readonly plans: Map<string, RecordPlan>
  /** Whether the dependency of a binding is down now. */
  readonly isDown: (binding: string) => boolean
  /** Failed calls so far, by binding and record id. */
  readonly failures: Map<string, number>
  calls: number
  /** Calls that have not ended, also of processes that are stopped or killed: a handler may resist its interruption. */
  running: number
}

/** Two services have different plans for one record. */
export const planKey = (binding: string, id: string): string => `${binding} ${id}`

export const makeHandlerContext = (history: History, isDown: HandlerContext["isDown"]): HandlerContext => ({
  history,
  isDown,
  plans: new Map(),
  failures: new Map(),
  calls: 0,
  running: 0
})

export const handleOne = <R = never>(
  plan: BindingPlan,
  process: string,
  handlerContext: HandlerContext,
  delivery: Record,
  also: Effect.Effect<unknown, BrokerError.BrokerError, R> = Effect.void
) => {
  const run = Effect.andThen(work(handlerContext, plan, delivery.value), Effect.orDie(also))
  return observed(plan, process, handlerContext, [delivery], run, (exit) =>
    Exit.isSuccess(exit) ? [delivery.record.offset] : []
  )
}

/** Handles a batch record by record. The plan's verdict decides what a failure says about the other records. */
export const handleBatch = (
  plan: BindingPlan,
  process: string,
  handlerContext: HandlerContext,
  batch: ReadonlyArray<Record>
) => {
  const done: Array<bigint> = []
  const run = Effect.gen(function* () {
    const failures: Array<{ readonly index: number; readonly error: unknown }> = []
    for (const [index, delivery] of batch.entries()) {
      const exit = yield* Effect.exit(work(handlerContext, plan, delivery.value))
      if (Exit.isSuccess(exit)) {
        done.push(delivery.record.offset)
        continue
      }
      // Only typed failures have a verdict. A defect or an interruption fails the whole batch.
      const reason = exit.cause.reasons.find(Cause.isFailReason)
      if (reason === undefined || plan.verdict === "none") return yield* Effect.failCause(exit.cause)
      if (plan.verdict === "from") return yield* EventBusError.BatchProcessing.from(index, reason.error)
      failures.push({ index, error: reason.error })
    }
    const [first, ...rest] = failures
    if (first !== undefined) return yield* EventBusError.BatchProcessing.these([first, ...rest])
  })
  return observed(plan, process, handlerContext, batch, run, (exit) => {
    if (Exit.isSuccess(exit)) return done
    const reason = exit.cause.reasons.find(Cause.isFailReason)
    return reason?.error instanceof EventBusError.BatchProcessing ? done : []
  })
}

/** The handler of the dead letter strategy. */
export const handleLetter = (
  plan: BindingPlan,
  process: string,
  { history }: HandlerContext,
  { record, value }: DeadLetterRecord.DeadLetterRecord
): Effect.Effect<void, Transient> =>
  Effect.suspend(() => {
    if (history.isKilled(process)) return Effect.never
    const partition = `${record.topic}/${record.partition}`
    history.add({ _tag: "LetterHandled", process, binding: plan.name, partition, offset: record.offset })
    return failsFor(decoder.decode(value ?? undefined)) ? Effect.fail(new Transient()) : Effect.void
  })

/** Records when the handler begins and how it ends. The handler of a killed process never runs. */
const observed = <E, R>(
  plan: BindingPlan,
  process: string,
  handlerContext: HandlerContext,
  deliveries: ReadonlyArray<Record>,
  run: Effect.Effect<unknown, E, R>,
  doneBy: (exit: Exit.Exit<unknown, E>) => ReadonlyArray<bigint>
): Effect.Effect<unknown, E, R> =>
  Effect.suspend(() => {
    const { history } = handlerContext
    const [first] = deliveries
    if (first === undefined || history.isKilled(process)) return Effect.never
    const call = ++handlerContext.calls
    handlerContext.running++
    history.add({
      _tag: "Called",
      process,
      binding: plan.name,
      consumer: consumerOf(first),
      call,
      partition: `${first.record.topic}/${first.record.partition}`,
      offsets: deliveries.map(({ record }) => record.offset),
      ids: deliveries.map(({ value }) => value)
    })
    return Effect.onExit(run, (exit) =>
      Effect.sync(() => {
        handlerContext.running--
        const outcome = Exit.isSuccess(exit) ? "done" : Cause.hasInterruptsOnly(exit.cause) ? "interrupted" : "failed"
        history.add({ _tag: "Returned", call, process, outcome, done: doneBy(exit) })
      })
    )
  })

/** The index behind the last dash of `x-eventbus-consumer-instance`. */
const consumerOf = (delivery: Record): number => {
  const header = delivery.headers.find(({ key }) => key === "x-eventbus-consumer-instance")
  return Number(/\d+$/.exec(decoder.decode(header?.value ?? encoder.encode("0")))?.[0])
}

const work = (handlerContext: HandlerContext, binding: BindingPlan, id: string): Effect.Effect<void, HandlerError> => {
  const key = planKey(binding.name, id)
  const plan = handlerContext.plans.get(key)
  if (plan === undefined) return Effect.die(new Error(`a handler got '${id}', which nobody published`))
  const worked = behave(plan.behaviour, () => {
    const before = handlerContext.failures.get(key) ?? 0
    handlerContext.failures.set(key, before + 1)
    return before
  })
  return Effect.andThen(
    worked,
    Effect.suspend(() => (handlerContext.isDown(binding.name) ? Effect.fail(new Transient()) : Effect.void))
  )
}
