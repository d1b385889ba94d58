/**
 * The route of a record that its delivery could not handle: to a retry topic or the dead letter topic, into a halt, or dropped.
 */

import * as Effect from "effect/Effect"
import type { ConsumerRecord, Header, RecordPosition, RetryProgress } from "../../ConsumerRecord.ts"
import type { DeadLetterReason, Failure } from "../../Failure.ts"
import type { Destination } from "../failure/classification.ts"
import type { Partition } from "../partition/partition.ts"
import type { Copy } from "../record/copy.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import type * as DeadLetterHeaders from "../record/deadLetterHeaders.ts"
import type { Undecodable } from "../record/decoding.ts"
import { type DeliveryResult, heldByBreaker, type ResultWithCopy } from "../record/deliveryResult.ts"
import * as HeaderSets from "../record/headerSets.ts"
import { inHeadersOf, readPosition } from "../record/origin.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import * as RetryState from "../record/retryState.ts"
import * as Tiers from "../retry/tiers.ts"
import { nextDestination } from "../settings/deliveries.ts"
import type { StartGate } from "../slots/startGate.ts"
import { type ConsumerContext, reportPublishFailed, reportSettled } from "./consumerContext.ts"
import { deadLetterTarget } from "./deadLetterTarget.ts"

/** A delivery that failed. */
export interface FailedDelivery {
  /** Handler calls in this delivery. */
  readonly attempts: number
  readonly failure: Failure
  readonly firstFailureMillis: number
  /** The record's retry state before this delivery. */
  readonly state: RetryState.RetryState
  /** Set when the record never reached the handler. */
  readonly undecodable?: Undecodable
}

/** The retry state in a record's headers. On the main topic only a replay for this group is believed (ruling 30). */
export const retryStateOf = (
  { definition, replayReader }: ConsumerContext<unknown>,
  partition: Partition,
  record: ConsumerRecord
): RetryState.RetryState => {
  if (partition.tier !== undefined) return RetryState.ofRetryTopic(record, partition.tier, definition)
  const replayed = ReplayHeaders.read(record, replayReader)
  return { ...RetryState.ofMainTopic(record), ...replayed, run: ReplayHeaders.runOf(record, replayReader) }
}

/** Where a record was read first: the same in the main topic, in each tier, and after a replay. Nothing else of its headers is read. */
export const originOf = (context: ConsumerContext<unknown>, at: Partition, record: ConsumerRecord): RecordPosition => {
  const read =
    at.tier !== undefined ? readPosition(inHeadersOf(record)) : ReplayHeaders.read(record, context.replayReader)?.origin
  return read ?? record
}

const progressOf = ({ state, attempts }: FailedDelivery): RetryProgress => ({
  origin: state.origin,
  totalAttempts: state.totalAttempts + attempts
})

/** Takes the record where the decision says. The answer is an effect only where a pause begins. A copy in the result is still to be published. */
export const takeRoute = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  destination: Destination,
  failed: FailedDelivery
): DeliveryResult | Effect.Effect<DeliveryResult> => {
  switch (destination._tag) {
    case "DeadLetter": {
      const reason = destination.isDecision ? "MANUAL" : "NON_RETRYABLE"
      return deadLetter(context, partition, record, failed, reason, destination.reason)
    }
    case "Pause":
      return hold(context, partition, record, failed, context.pauseBinding)
    case "Skip":
      return {
        ...{ settlement: "Skipped", attempts: failed.attempts, failure: failed.failure },
        progress: progressOf(failed)
      }
    case "NextTier":
    case "Tier":
    case "After":
      return toNextTier(context, partition, record, destination, failed)
  }
}

const toNextTier = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  destination: Extract<Destination, { readonly _tag: "NextTier" | "Tier" | "After" }>,
  failed: FailedDelivery
): DeliveryResult | Effect.Effect<DeliveryResult> => {
  const { definition } = context
  const { state } = failed
  const nowMillis = context.clock.currentTimeMillisUnsafe()
  const next = inTime(definition, failed, nowMillis, nextDestination(definition, state, destination))
  if (next === "no-such-tier") {
    const detail = Tiers.noSuchTier(destination, definition.tiers)
    return deadLetter(context, partition, record, failed, "NON_RETRYABLE", detail)
  }
  if (next === "exhausted") {
    if (definition.onExhausted === "dead-letter") {
      return deadLetter(context, partition, record, failed, "RETRIES_EXHAUSTED")
    }
    partition.addReason("operator")
    return hold(context, partition, record, failed, Effect.andThen(partition.syncFetch, context.onHalted(partition)))
  }
  const { tier, attempt } = next
  const { topic } = definition.tiers.topicOf(tier)
  const totalAttempts = state.totalAttempts + failed.attempts
  const headers = RetryState.headersFor(record, {
    origin: state.origin,
    tier,
    attempt,
    publishedMillis: nowMillis,
    totalAttempts,
    firstFailureMillis: state.firstFailureMillis ?? failed.firstFailureMillis,
    trail: tier === state.tier ? state.trail : [...state.trail, tierFailure(state, failed, nowMillis)],
    replayCount: state.replayCount,
    run: state.run
  })
  return {
    settlement: "Routed",
    attempts: failed.attempts,
    failure: failed.failure,
    progress: {
      origin: state.origin,
      totalAttempts,
      nextAttemptMillis: nowMillis + definition.tiers.waitMillis(tier, attempt)
    },
    target: { topic, tier, attempt },
    copy: copy(context, partition, { record, topic, headers, onStored: undefined }, false)
  }
}

/** The next delivery, unless `maxElapsedTime` is over before it is due. It counts from the failure in the main topic: a replay begins anew. */
const inTime = (
  { retry, tiers }: Pick<ConsumerContext<unknown>["definition"], "retry" | "tiers">,
  { state, firstFailureMillis }: FailedDelivery,
  nowMillis: number,
  next: Tiers.NextDestination
): Tiers.NextDestination => {
  if (retry.maxElapsedMillis === undefined || typeof next === "string") return next
  const dueMillis = nowMillis + tiers.waitMillis(next.tier, next.attempt)
  const sinceMillis = state.tier === 0 ? nowMillis : (RetryState.leftMainTopicMillis(state) ?? firstFailureMillis)
  return dueMillis - sinceMillis > retry.maxElapsedMillis ? "exhausted" : next
}

/** Pauses, reports that the record halted its partition, and waits for an operator: a decision settles the record, a resume delivers it again (ruling 88). */
const hold = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  failed: FailedDelivery,
  pause: Effect.Effect<void>
): Effect.Effect<DeliveryResult> =>
  Effect.gen(function* () {
    const halted: DeliveryResult = {
      ...{ settlement: "Halted", attempts: failed.attempts, failure: failed.failure },
      progress: progressOf(failed)
    }
    yield* pause
    return yield* untilDecided(context, partition, record, failed, {
      halted,
      until: partition.runnable,
      isTrial: false
    })
  })

/** How a record waits for an operator, and what it has come to where nobody decides. */
interface Wait {
  readonly halted: DeliveryResult
  readonly until: Effect.Effect<void>
  readonly isTrial: boolean
}

/** Reports that the record stays in its place, and waits there. The delivery holds nothing meanwhile. */
const untilDecided = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  failed: FailedDelivery,
  { halted, until, isTrial }: Wait
): Effect.Effect<DeliveryResult> =>
  Effect.gen(function* () {
    reportSettled(context, partition, record, halted)
    const decision = yield* context.held.hold({ partition, record, failure: failed.failure, until, isTrial })
    if (decision === undefined) return { ...halted, wasHeld: true }
    // The calls of this delivery are counted with the halt.
    return decision.kind === "skip"
      ? { settlement: "Skipped", attempts: 0, failure: failed.failure, wasHeld: true }
      : {
          ...deadLetter(context, partition, record, failed, "MANUAL", decision.reason),
          ...{ attempts: 0, wasHeld: true }
        }
  })

/**
 * Keeps a record whose trial call has failed until the breaker may try it again. An operator can decide about it meanwhile, where it is the only record that there is to
 * try (rulings 72 and 88).
 */
export const holdTrial = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  gate: StartGate,
  record: ConsumerRecord,
  failed: FailedDelivery
): Effect.Effect<DeliveryResult> => {
  const nextWindow = context.limits.breaker?.waitForNextWindow(gate, record) ?? Effect.void
  return untilDecided(context, partition, record, failed, {
    halted: heldByBreaker(failed.attempts, failed.failure),
    until: Effect.andThen(nextWindow, gate.runnable),
    isTrial: true
  })
}

/** The result of a record that goes to the dead letter topic. */
export const deadLetter = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  record: ConsumerRecord,
  failed: FailedDelivery,
  reason: DeadLetterReason,
  detail?: string
): ResultWithCopy => {
  const { state } = failed
  const nowMillis = context.clock.currentTimeMillisUnsafe()
  const { deadLetter: options } = context.definition
  const letter: DeadLetterHeaders.DeadLetter = {
    record,
    origin: state.origin,
    failure: failed.failure,
    undecodable: failed.undecodable,
    reason,
    detail,
    tier: state.tier,
    totalAttempts: state.totalAttempts + failed.attempts,
    firstFailureMillis: state.firstFailureMillis ?? failed.firstFailureMillis,
    trail: [...state.trail, tierFailure(state, failed, nowMillis)],
    replayCount: state.replayCount,
    run: state.run,
    nowMillis,
    ownFingerprint: options.settings.fingerprint
  }
  const topic = deadLetterTarget(context.definition, letter)
  const headers = HeaderSets.make(letter, context.definition.groupId, options.settings.headers ?? {})
  return {
    settlement: "DeadLettered",
    attempts: failed.attempts,
    failure: failed.failure,
    progress: progressOf(failed),
    target: { topic, reason },
    copy: copy(context, partition, { record, topic, headers, onStored: context.onDeadLetter }, true)
  }
}

/** The failure in the tier that the record is in. */
const tierFailure = (
  state: RetryState.RetryState,
  { failure, attempts }: FailedDelivery,
  nowMillis: number
): DeadLetterHeaders.TierFailure => ({
  tier: state.tier,
  exceptionClass: failure.className,
  exhaustedAtMillis: nowMillis,
  attempts: RetryState.attemptsInTier(state) + attempts
})

/** A copy of which only its source is missing. Its headers were made for it. */
type Draft = Pick<Copy, "record" | "topic" | "onStored"> & { readonly headers: Array<Header> }

const copy = <R>(
  context: ConsumerContext<R>,
  partition: Partition,
  { record, topic, headers, onStored }: Draft,
  isDeadLetter: boolean
): Copy => ({
  partition,
  record,
  topic,
  headers: CopyOwner.marked(
    context.tracing?.withTraceHeaders(record, headers) ?? headers,
    topic,
    context.definition.groupId
  ),
  onStored,
  onRefused: (error, attempt) =>
    reportPublishFailed(context, partition, record, { topic, isDeadLetter }, error, attempt)
})
