/**
 * Bindings from their plans.
 */
import { Binding, type CircuitBreaker, CurrentTransaction, DeadLetter, RetryPolicy, Route } from "@eventbus/core"
import { Effect } from "effect"
import { encoder, type Record, recordId } from "../scenario/plannedRecords.ts"
import { defaultMaxReplays } from "../scenario/replays.ts"
import { mainTopics, outputPartition, outputTopic } from "../scenario/retries.ts"
import type * as Plan from "../scenario/Scenario.ts"
import {
  type BindingPlan,
  type BreakerPlan,
  maxPollIntervalMillis,
  type PerKeyPlan,
  rebalanceTimeoutMillis,
  sessionTimeoutMillis
} from "../scenario/Scenario.ts"
import type { Busy } from "./behaviour.ts"
import { type HandlerContext, handleBatch, handleLetter, handleOne } from "./handlers.ts"

export const makeBinding = (
  plan: BindingPlan,
  concurrency: number,
  process: string,
  handlerContext: HandlerContext
) => {
  const settings = {
    topic: plan.otherTopics.length === 0 ? plan.topic : mainTopics(plan),
    groupId: plan.groupId,
    value: recordId,
    concurrency,
    ackMode: plan.ackMode,
    commitInterval: plan.commitIntervalMillis,
    processingOrder: plan.processingOrder,
    staticMembership: plan.membership === "static",
    maxPollRecords: plan.maxPollRecords,
    maxBufferedRecords: plan.maxBufferedRecords,
    ...(plan.maxInFlight === undefined ? {} : { maxInFlight: plan.maxInFlight }),
    retry: retryPolicy(plan),
    ...(plan.handlesLetters
      ? { deadLetter: DeadLetter.custom((letter) => handleLetter(plan, process, handlerContext, letter)) }
      : {}),
    ...(plan.maxReplays === defaultMaxReplays || plan.handlesLetters
      ? {}
      : // Nothing becomes due in a run.
        { deadLetter: DeadLetter.scheduledReplay({ cooldown: "30 days", maxReplays: plan.maxReplays }) }),
    ...(plan.breaker === undefined ? {} : { circuitBreaker: circuitBreaker(plan, plan.breaker, handlerContext) }),
    sessionTimeout: sessionTimeoutMillis,
    heartbeatInterval: sessionTimeoutMillis / 4,
    rebalanceTimeout: rebalanceTimeoutMillis,
    maxPollInterval: maxPollIntervalMillis,
    fetchMaxWait: plan.maxWaitMillis,
    shutdownTimeout: plan.shutdownTimeoutMillis,
    ...(plan.perKey === undefined ? {} : orderPerKey(plan.perKey)),
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
    ...(plan.isIdempotent ? { idempotency: {} } : {}),
    handler: (delivery: Record) => handleOne(plan, process, handlerContext, delivery)
  })
}

const orderPerKey = ({ onDeadLetter, holdForMillis, maxParkedKeys, maxParkedBytes }: PerKeyPlan) =>
  ({
    orderingMode: "PER_KEY",
    perKey: { onDeadLetter, holdFor: holdForMillis, maxParkedKeys, maxParkedBytes }
  }) as const

const retryPolicy = ({ maxAttempts, tiers, tierConsumer }: BindingPlan): RetryPolicy.RetryPolicy => {
  const blocking = { maxAttempts, initialBackoff: 50, maxBackoff: 500 }
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
const output = (plan: BindingPlan, { value, record }: Record) =>
  CurrentTransaction.send({
    topic: outputTopic(plan),
    partition: outputPartition(plan, record.topic, record.partition),
    key: null,
    value: encoder.encode(value)
  })
