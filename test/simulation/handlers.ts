/**
 * Bindings made from their plans, with handlers that do what the plan of each record says and write it into the history.
 */
import {
  Binding,
  type BrokerError,
  type CircuitBreaker,
  type ConsumerRecord,
  CurrentTransaction,
  type Delivery,
  EventBusError,
  RetryPolicy,
  Route,
  Serde
} from "@eventbus/core"
import { Cause, Data, Effect, Exit, Schema } from "effect"
import type { History } from "./History.ts"
import type * as Plan from "./Scenario.ts"
import {
  type Behaviour,
  type BindingPlan,
  type BreakerPlan,
  type Failing,
  maxPollIntervalMillis,
  type RecordPlan,
  rebalanceTimeoutMillis,
  sessionTimeoutMillis
} from "./Scenario.ts"

class Transient extends Schema.TaggedError<Transient>()("Transient", {}) {}
class Unwanted extends Schema.TaggedError<Unwanted>()("Unwanted", {}) {}
class Harmless extends Schema.TaggedError<Harmless>()("Harmless", {}) {}
class Alarm extends Schema.TaggedError<Alarm>()("Alarm", {}) {}

class Busy extends Data.TaggedError("Busy")<{ readonly route: Plan.Route }> {}

type HandlerError = Transient | Unwanted | Harmless | Alarm | Busy

/** State that all handlers of a run share. */
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

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export const encode = (plan: RecordPlan): Uint8Array =>
  encoder.encode(plan.behaviour._tag === "Undecodable" ? `!${plan.id}` : plan.id)

/** The user's own headers, and lies in the connector's name where the plan says so. */
export const headersOf = ({ id, forged }: RecordPlan): ReadonlyArray<ConsumerRecord.Header> =>
  Object.entries(forged ? { ...ownHeaders(id), ...lies } : ownHeaders(id)).map(([key, value]) => ({
    key,
    value: encoder.encode(value)
  }))

export const ownHeaders = (id: string) => ({ "trace-id": `trace of ${id}`, "content-type": "text/plain" })

const lies = {
  "x-eventbus-original-topic": "elsewhere",
  "x-eventbus-original-partition": "7",
  "x-eventbus-original-offset": "77",
  "x-eventbus-original-timestamp": "-1",
  "x-eventbus-retry-tier": "2",
  "x-eventbus-retry-attempt": "99",
  "x-eventbus-retry-timestamp": "99999999999999",
  "x-eventbus-total-attempts": "1000",
  "x-eventbus-first-failure-timestamp": "NaN",
  "x-eventbus-tier0-attempts": "500",
  "x-eventbus-tier3-exception": "Lie"
}

const recordId = Serde.make<string>({
  name: "record id",
  encode: (id) => encoder.encode(id),
  decode: (bytes) => {
    const id = decoder.decode(bytes)
    if (id.startsWith("!")) throw new Error("this value was made to be unreadable")
    return id
  }
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

/** `failure` counts one more failed call and answers how many there were before. */
const behave = (behaviour: Behaviour, failure: () => number): Effect.Effect<void, HandlerError> => {
  const failing = (times: number, failed: Effect.Effect<void, HandlerError>) =>
    Effect.suspend(() => (failure() < times ? failed : Effect.void))
  switch (behaviour._tag) {
    case "Fine":
      return pause(behaviour.millis)
    case "Flaky":
      return Effect.andThen(pause(behaviour.millis), failing(behaviour.failures, fail(behaviour.how)))
    case "Busy":
      return Effect.andThen(
        pause(behaviour.millis),
        failing(behaviour.failures, Effect.fail(new Busy({ route: behaviour.route })))
      )
    case "Broken":
      return Effect.andThen(pause(behaviour.millis), fail(behaviour.how))
    case "Rejected":
      return Effect.fail(new Unwanted())
    case "Ignorable":
      return Effect.fail(new Harmless())
    case "Alarming":
      return failing(1, Effect.fail(new Alarm()))
    case "Undecodable":
      return Effect.die(new Error("a handler was called with a value that cannot be read"))
    case "Stuck":
      return failing(behaviour.calls, Effect.never)
    case "Stubborn":
      return Effect.uninterruptible(Effect.sleep(behaviour.millis))
  }
}

const pause = (millis: number): Effect.Effect<void> => (millis === 0 ? Effect.void : Effect.sleep(millis))

const fail = (how: Failing): Effect.Effect<never, Transient> => {
  switch (how) {
    case "fail":
      return Effect.fail(new Transient())
    case "die":
      return Effect.die("a handler died")
    case "throw":
      return Effect.sync(() => {
        throw "a handler threw a string"
      })
    case "interrupt":
      return Effect.interrupt
  }
}
