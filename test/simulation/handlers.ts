/**
 * Bindings made from their plans, with handlers that do what the plan of each record says and write it into the history.
 */
import {
  Binding,
  type BrokerError,
  type CircuitBreaker,
  CurrentTransaction,
  type Delivery,
  EventBusError,
  RetryPolicy,
  Route
} from "@eventbus/core"
import { Cause, Effect, Exit } from "effect"
import { type Busy, behave, type HandlerError, Transient } from "./behaviours.ts"
import type { History } from "./History.ts"
import { decoder, encoder, recordId } from "./recordValues.ts"
import type * as Plan from "./Scenario.ts"
import {
  type BindingPlan,
  type BreakerPlan,
  maxPollIntervalMillis,
  type RecordPlan,
  rebalanceTimeoutMillis,
  sessionTimeoutMillis
} from "./Scenario.ts"

/** The state that all handlers of a run share. */
export interface HandlerContext {
  readonly history: History
  readonly plans: Map<string, RecordPlan>
  /** Whether the dependency of a binding is down now. */
  readonly isDown: (binding: string) => boolean
  /** Failed calls so far, by record id. */
  readonly failures: Map<string, number>
  calls: number
  /** Calls that have not ended, also of processes that were stopped or killed: a handler may resist its interruption. */
  running: number
}

export const makeHandlerContext = (history: History, isDown: HandlerContext["isDown"]): HandlerContext => ({
  history,
  isDown,
  plans: new Map(),
  failures: new Map(),
  calls: 0,
  running: 0
})

type Record = Delivery.Delivery<Uint8Array | null, string>

export const makeBinding = (
  plan: BindingPlan,
  concurrency: number,
  process: string,
  handlerContext: HandlerContext
) => {
  const settings = {
    topic: plan.topic,
    groupId: plan.groupId,
    value: recordId,
    concurrency,
    ackMode: plan.ackMode,
    commitInterval: plan.commitIntervalMillis,
    processingOrder: plan.processingOrder,
    membership: plan.membership,
    maxPollRecords: plan.maxPollRecords,
    maxBufferedRecords: plan.maxBufferedRecords,
    ...(plan.maxInFlight === undefined ? {} : { maxInFlight: plan.maxInFlight }),
    retry: retryPolicy(plan),
    ...(plan.breaker === undefined ? {} : { circuitBreaker: circuitBreaker(plan, plan.breaker, handlerContext) }),
    sessionTimeout: sessionTimeoutMillis,
    heartbeatInterval: sessionTimeoutMillis / 4,
    rebalanceTimeout: rebalanceTimeoutMillis,
    maxPollInterval: maxPollIntervalMillis,
    fetchMaxWait: plan.maxWaitMillis,
    shutdownTimeout: plan.shutdownTimeoutMillis,
    ...(plan.onExhausted === "halt" ? ({ orderingMode: "STRICT", onExhausted: "halt" } as const) : {}),
    onError: {
      Transient: Route.retry,
      Busy: ({ route }: Busy) => routeOf(route),
      Unwanted: Route.deadLetter("unwanted"),
      Harmless: Route.skip,
      Alarm: Route.pause
    }
  } as const
  if (plan.listener === "whole-batch") {
    return Binding.makeBatch(plan.name, {
      ...settings,
      handleBatch: ({ deliveries }) => handleBatch(plan, process, handlerContext, deliveries)
    })
  }
  if (plan.listener === "transactional") {
    const { ackMode, commitInterval, processingOrder, ...others } = settings
    return Binding.makeTransactional(plan.name, {
      ...others,
      handler: (delivery: Record) => handleOne(plan, process, handlerContext, delivery, output(plan, delivery))
    })
  }
  return Binding.make(plan.name, {
    ...settings,
    listenerType: plan.listener === "batch" ? "BATCH" : "SINGLE",
    batchFailureStrategy: plan.batchFailureStrategy,
    handler: (delivery: Record) => handleOne(plan, process, handlerContext, delivery)
  })
}

const retryPolicy = ({ maxAttempts, tiers, tierConsumer }: BindingPlan): RetryPolicy.RetryPolicy => {
  const blocking = { maxAttempts, initialInterval: 50, maxInterval: 500 }
  if (tiers.length === 0) return RetryPolicy.blocking(blocking)
  return RetryPolicy.tiered({
    blocking,
    tiers: tiers.map(({ delayMillis, ...tier }) => ({ ...tier, delay: delayMillis })),
    equalDelays: "share",
    consumer: tierConsumer
  })
}

const circuitBreaker = (
  binding: BindingPlan,
  plan: BreakerPlan,
  { isDown }: HandlerContext
): CircuitBreaker.Options => ({
  slidingWindowType: plan.windowType,
  slidingWindowSize: plan.windowSize,
  minimumNumberOfCalls: plan.minimumCalls,
  failureRateThreshold: plan.failureRate,
  permittedNumberOfCallsInHalfOpenState: plan.permits,
  waitDurationInOpenState: plan.waitMillis,
  slowCallDuration: plan.slowMillis,
  automaticPauseOnOpen: plan.automaticPauseOnOpen,
  ...(plan.backsOff ? { openBackoff: { multiplier: 2, maxWaitDuration: plan.waitMillis * 4 } } : {}),
  ...(plan.probes
    ? { probe: Effect.suspend(() => (isDown(binding.name) ? Effect.fail("it is down") : Effect.void)) }
    : {})
})

const routeOf = (route: Plan.Route): Route.Route => {
  switch (route._tag) {
    case "Next":
      return Route.nextTier
    case "Tier":
      return Route.tier(route.tier)
    case "After":
      return Route.after(route.millis)
  }
}

/** The output of a transactional handler for a record. */
const output = (plan: BindingPlan, { value }: Record) =>
  CurrentTransaction.send({ topic: outputTopic(plan), key: null, value: encoder.encode(value) })

export const outputTopic = (plan: BindingPlan): string => `${plan.topic}.out`

const handleOne = <R = never>(
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

/** Handles a batch record by record; what a failure says about the others is the plan's verdict. */
const handleBatch = (
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
      // Only typed failures have a verdict; what dies or is interrupted takes the batch along.
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

/** Writes down when the handler begins and how it ends. A killed process does nothing any more. */
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
      offsets: deliveries.map(({ record }) => record.offset)
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
  const plan = handlerContext.plans.get(id)
  if (plan === undefined) return Effect.die(new Error(`a handler got '${id}', which nobody published`))
  const worked = behave(plan.behaviour, () => {
    const before = handlerContext.failures.get(id) ?? 0
    handlerContext.failures.set(id, before + 1)
    return before
  })
  return Effect.andThen(
    worked,
    Effect.suspend(() => (handlerContext.isDown(binding.name) ? Effect.fail(new Transient()) : Effect.void))
  )
}
