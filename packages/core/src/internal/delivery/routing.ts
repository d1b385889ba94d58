/**
 * What happens to a record that its delivery could not handle: it goes to a retry topic or the dead letter topic, halts, or is dropped.
 */
import { Effect } from "effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as TopicName from "../../TopicName.ts"
import type { Destination } from "../failure/classification.ts"
import type { Failure } from "../failure/failure.ts"
import type { Partition } from "../partition/partition.ts"
import type { Copy } from "../record/copy.ts"
import type * as DeadLetterHeaders from "../record/deadLetterHeaders.ts"
import * as DeadLetterRecordHeaders from "../record/deadLetterRecordHeaders.ts"
import type { Undecodable } from "../record/decoding.ts"
import type { Parked, Settled } from "../record/deliveryResult.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import * as RetryState from "../record/retryState.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import { type Handling, publishFailed } from "./consumerContext.ts"

/** How the delivery went. */
export interface Story {
  /** Handler calls in this delivery. */
  readonly attempts: number
  readonly failure: Failure
  readonly firstFailureMillis: number
  /** Set when the record never reached the handler. */
  readonly undecodable?: Undecodable
}

/** What a record's headers say about the way here; on the main topic only what a replay for this group has kept (ruling 30). */
export const retryStateOf = (
  { definition }: Handling<unknown>,
  partition: Partition,
  record: ConsumerRecord
): RetryState.RetryState => {
  if (partition.tier !== undefined) return RetryState.ofRetryTopic(record, partition.tier, definition.tiers.deliveries)
  const replayed = ReplayHeaders.read(record, definition.groupId)
  if (replayed === undefined) return RetryState.ofMainTopic(record)
  const { origin, firstFailureMillis } = replayed
  return { ...RetryState.ofMainTopic(record), origin, firstFailureMillis }
}

/** Takes the record where the decision says, by an effect only where that takes one. A copy that the result has is still to be published. */
export const takeRoute = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  destination: Destination,
  story: Story
): Settled | Effect.Effect<Settled> => {
  switch (destination._tag) {
    case "DeadLetter":
      return deadLetter(handling, partition, record, story, "NON_RETRYABLE", destination.reason)
    case "Pause":
      return Effect.as(handling.pauseBinding, { settlement: "Halted", ...story } as const)
    case "Skip":
      return { settlement: "Skipped", ...story }
    case "NextTier":
    case "Tier":
    case "After":
      return onward(handling, partition, record, destination, story)
  }
}

const onward = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  destination: Extract<Destination, { readonly _tag: "NextTier" | "Tier" | "After" }>,
  story: Story
): Settled | Effect.Effect<Settled> => {
  const { definition } = handling
  // In a batch that goes on, a retried record would come back alone, out of its batch (ruling 53).
  const skipsTiers = definition.listenerType === "BATCH" && definition.batchFailureStrategy === "DLQ_AND_CONTINUE"
  const state = retryStateOf(handling, partition, record)
  const hop = skipsTiers ? "exhausted" : definition.tiers.nextDestination(state.tier, state.attempt, destination)
  if (hop === "no-such-tier") {
    return deadLetter(handling, partition, record, story, "NON_RETRYABLE")
  }
  if (hop === "exhausted") {
    if (definition.onExhausted === "dead-letter") {
      return deadLetter(handling, partition, record, story, "RETRIES_EXHAUSTED")
    }
    partition.addReason("operator")
    return Effect.as(Effect.andThen(partition.syncFetch, handling.onHalted(partition)), {
      settlement: "Halted",
      ...story
    } as const)
  }
  const nowMillis = handling.clock.currentTimeMillisUnsafe()
  const { tier, attempt } = hop
  const { topic } = definition.tiers.topicOf(tier)
  const headers = RetryState.headersFor(record, {
    origin: state.origin,
    tier,
    attempt,
    publishedMillis: nowMillis,
    totalAttempts: state.totalAttempts + story.attempts,
    firstFailureMillis: state.firstFailureMillis ?? story.firstFailureMillis,
    trail: tier === state.tier ? state.trail : [...state.trail, given(state, story, nowMillis)]
  })
  return {
    settlement: "Routed",
    attempts: story.attempts,
    failure: story.failure,
    target: { topic, tier, attempt },
    copy: copy(handling, partition, { record, topic, headers, onStored: undefined })
  }
}

/** To the dead letter topic. */
export const deadLetter = <R>(
  handling: Handling<R>,
  partition: Partition,
  record: ConsumerRecord,
  story: Story,
  reason: DeadLetterHeaders.DeadLetterReason,
  detail?: string
): Parked => {
  const state = retryStateOf(handling, partition, record)
  const nowMillis = handling.clock.currentTimeMillisUnsafe()
  const { deadLetter: options } = handling.definition
  const letter: DeadLetterHeaders.DeadLetter = {
    record,
    origin: state.origin,
    failure: story.failure,
    undecodable: story.undecodable,
    reason,
    detail,
    tier: state.tier,
    totalAttempts: state.totalAttempts + story.attempts,
    firstFailureMillis: state.firstFailureMillis ?? story.firstFailureMillis,
    trail: [...state.trail, given(state, story, nowMillis)],
    nowMillis
  }
  const topic = targetOf(handling.definition, letter)
  const headers = DeadLetterRecordHeaders.make(letter, handling.definition.groupId, options.settings.headers ?? {})
  return {
    ...story,
    settlement: "DeadLettered",
    target: { topic, reason },
    copy: copy(handling, partition, { record, topic, headers, onStored: handling.onDeadLetter })
  }
}

/** What the binding's `topicFor` says, as far as that is a topic that can be made, and one that the binding does not read. */
const targetOf = (
  definition: BindingDefinition<unknown>,
  { reason, failure, tier }: DeadLetterHeaders.DeadLetter
): string => {
  const { deadLetter, deadLetterTopic } = definition
  const { topicFor } = deadLetter.settings
  if (topicFor === undefined) return deadLetterTopic
  try {
    const { className: exceptionClass, message, tag } = failure
    const topic: unknown = topicFor({ reason, exceptionClass, message, tag, tier })
    return typeof topic === "string" && TopicName.illegal(topic) === undefined && !isRead(definition, topic)
      ? topic
      : deadLetterTopic
  } catch {
    return deadLetterTopic
  }
}

/** A dead letter there would come back as a new record, for ever. */
const isRead = ({ topic, tiers }: BindingDefinition<unknown>, target: string): boolean =>
  [topic, ...tiers.topics.map((tier) => tier.topic)].some((read) => read === target || TopicName.collide(read, target))

/** How the tier that the record is in gave it up. */
const given = (
  state: RetryState.RetryState,
  { failure, attempts }: Story,
  nowMillis: number
): DeadLetterHeaders.TierFailure => ({
  tier: state.tier,
  exceptionClass: failure.className,
  exhaustedAtMillis: nowMillis,
  attempts: RetryState.attemptsInTier(state) + attempts
})

const copy = <R>(
  handling: Handling<R>,
  partition: Partition,
  { record, topic, headers, onStored }: Omit<Copy, "partition" | "onRefused">
): Copy => ({
  partition,
  record,
  topic,
  headers: handling.tracing?.withTraceHeaders(record, headers) ?? headers,
  onStored,
  onRefused: (error, attempt) => publishFailed(handling, partition, record, topic, error, attempt)
})
