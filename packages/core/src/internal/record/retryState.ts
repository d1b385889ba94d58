/**
 * The retry state that a record carries through the tiers in its headers: its origin, its tier and delivery, and its failures so far.
 *
 * The headers are untrusted input (ruling 14): a missing, malformed or out-of-range header gets a safe default. On the main topic none of them is read.
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import type { Tiers, TierTopic } from "../retry/tiers.ts"
import * as CompactMark from "./compactMark.ts"
import * as CopyOwner from "./copyOwner.ts"
import { addOrigin, addTierFailure, carriedOver, number, type Origin, type TierFailure } from "./deadLetterHeaders.ts"
import type { RetryPosition } from "./decoding.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"
import { timestamp, wholeNumber } from "./headerValues.ts"
import { inHeadersOf, lastValues, type OwnHeaders, readOrigin } from "./origin.ts"
import * as RunMark from "./runMark.ts"

export interface RetryState {
  readonly origin: Origin
  /** 0 is the main topic. */
  readonly tier: number
  /** The number of this delivery in the tier, from 1. */
  readonly attempt: number
  /** When it was published to the tier, epoch milliseconds. */
  readonly publishedMillis: number
  /** Handler calls before this delivery, in all tiers together. */
  readonly totalAttempts: number
  /** Undefined before the first failure. */
  readonly firstFailureMillis: number | undefined
  /** The tiers that failed, in order. */
  readonly trail: ReadonlyArray<TierFailure>
  /** How often it was replayed. */
  readonly replayCount: number
  /** The run that replayed it last. */
  readonly run?: RunMark.RunMark | undefined
}

const noFailures: ReadonlyArray<TierFailure> = []

/** The state of a record of the main topic: tier 0, whatever its headers claim. */
export const ofMainTopic = (record: ConsumerRecord): RetryState => ({
  origin: record,
  tier: 0,
  attempt: 1,
  publishedMillis: record.timestamp,
  totalAttempts: 0,
  firstFailureMillis: undefined,
  trail: noFailures,
  replayCount: 0
})

/** The binding that reads: its main topic, and its tiers. */
interface Reader {
  readonly topic: string
  readonly tiers: Pick<Tiers, "deliveries" | "ofTopic">
}

/** Reads the state of a record of a retry topic. */
export const ofRetryTopic = (record: ConsumerRecord, topic: TierTopic, reader: Reader): RetryState => {
  const headers = lastValues(record.headers)
  const told = deliveryOf(record, headers)
  const tier = tierOf(told, topic)
  return {
    origin: originOf(record, headers, reader),
    tier,
    attempt: attemptOf(told, tier, reader),
    publishedMillis: plausible(headers.get(Names.retryTimestamp), record),
    totalAttempts: wholeNumber(headers.get(Names.totalAttempts), 0, maxAttempts) ?? 0,
    firstFailureMillis: timestamp(headers.get(Names.firstFailureTimestamp)),
    trail: trailOf(headers, tier),
    replayCount: replayCountOf(record, headers.get(Names.replayCount)),
    run: runOf(record, headers.get(Names.runId))
  }
}

/** Where a record of a retry topic is on its way, for its handler. Each part is read when the handler asks for it: most handlers never do. */
export const positionOf = (record: ConsumerRecord, topic: TierTopic, reader: Reader): RetryPosition =>
  new PositionInTier(record, topic, reader)

class PositionInTier implements RetryPosition {
  readonly #record: ConsumerRecord
  readonly #topic: TierTopic
  readonly #reader: Reader
  #origin: Origin | undefined = undefined
  #tier: number | undefined = undefined

  constructor(record: ConsumerRecord, topic: TierTopic, reader: Reader) {
    this.#record = record
    this.#topic = topic
    this.#reader = reader
  }

  get origin(): Origin {
    this.#origin ??= originOf(this.#record, inHeadersOf(this.#record), this.#reader)
    return this.#origin
  }

  get tier(): number {
    this.#tier ??= tierOf(deliveryOf(this.#record, inHeadersOf(this.#record)), this.#topic)
    return this.#tier
  }

  get attempt(): number {
    return attemptOf(deliveryOf(this.#record, inHeadersOf(this.#record)), this.tier, this.#reader)
  }
}

/** Another producer may have taken the count over from a record that it read: only a copy of ours tells how often it was replayed. */
const replayCountOf = (record: ConsumerRecord, told: HeaderValues.HeaderValue): number =>
  told === undefined || CopyOwner.of(record) === undefined ? 0 : (wholeNumber(told, 0, maxAttempts) ?? 0)

/** As for the count. */
const runOf = (record: ConsumerRecord, told: HeaderValues.HeaderValue): RunMark.RunMark | undefined =>
  told === undefined || CopyOwner.of(record) === undefined ? undefined : RunMark.read(told)

/**
 * The origin, if it is in a topic that the binding reads: a copy that a mirror put here under another topic name tells of a record that the binding never had, and a
 * replay would go there. The copy itself is the origin otherwise, and so the first copy is that of the next ones.
 */
const originOf = (record: ConsumerRecord, headers: OwnHeaders, { topic, tiers }: Reader): Origin => {
  const origin = readOrigin(record, headers)
  return origin !== undefined && (origin.topic === topic || tiers.ofTopic(origin.topic) !== undefined) ? origin : record
}

/** Tier and delivery number as the headers have them. */
interface ToldDelivery {
  readonly tier: HeaderValues.HeaderValue
  readonly attempt: HeaderValues.HeaderValue
}

/** The compact mark has both where the copy had no room for their headers. */
const deliveryOf = (record: ConsumerRecord, headers: OwnHeaders): ToldDelivery => {
  const tier = headers.get(Names.retryTier)
  if (tier === undefined && headers.get(Names.compactMark) !== undefined) {
    const delivery = CompactMark.read(record.topic, record.headers)?.delivery
    if (delivery !== undefined) return delivery
  }
  return { tier, attempt: headers.get(Names.retryAttempt) }
}

const tierOf = (told: ToldDelivery, { first, last }: TierTopic): number => wholeNumber(told.tier, first, last) ?? first

const attemptOf = (told: ToldDelivery, tier: number, { tiers }: Reader): number =>
  wholeNumber(told.attempt, 1, tiers.deliveries(tier)) ?? 1

/** When a record was published to its retry topic, epoch milliseconds. The delay needs nothing else, so nothing else is read. */
export const publishedMillis = (record: ConsumerRecord): number =>
  plausible(HeaderValues.last(record.headers, Names.retryTimestamp), record)

/** How long a record of a retry topic waits there, in milliseconds, by the number of its delivery. */
export const waitMillis = (
  record: ConsumerRecord,
  topic: TierTopic,
  reader: Reader & { readonly tiers: Pick<Tiers, "waitMillis"> }
): number => {
  const told = deliveryOf(record, inHeadersOf(record))
  const tier = tierOf(told, topic)
  return reader.tiers.waitMillis(tier, attemptOf(told, tier, reader))
}

/** Builds the headers of a copy in a retry topic: the user's own, then origin, failures, tier and delivery. */
export const headersFor = (record: ConsumerRecord, state: RetryState): Array<Header> => {
  const headers = [...carriedOver(record.headers)]
  addOrigin(headers, state.origin)
  headers.push(number(Names.totalAttempts, state.totalAttempts))
  if (state.firstFailureMillis !== undefined) {
    headers.push(number(Names.firstFailureTimestamp, state.firstFailureMillis))
  }
  for (const tierFailure of state.trail) addTierFailure(headers, tierFailure)
  if (state.replayCount > 0) headers.push(number(Names.replayCount, state.replayCount))
  if (state.run !== undefined) headers.push(RunMark.header(state.run))
  headers.push(
    number(Names.retryTier, state.tier),
    number(Names.retryAttempt, state.attempt),
    number(Names.retryTimestamp, state.publishedMillis)
  )
  return headers
}

/** When the delivery of a record of a retry topic failed in the main topic, epoch milliseconds. The first failure of a replayed record is older, and says nothing. */
export const leftMainTopicMillis = ({ trail, firstFailureMillis, replayCount }: RetryState): number | undefined => {
  const [first] = trail
  if (first?.tier === 0 && first.exhaustedAtMillis > 0) return first.exhaustedAtMillis
  return replayCount === 0 ? firstFailureMillis : undefined
}

/** Handler calls in the current tier before this delivery. */
export const attemptsInTier = ({ totalAttempts, trail }: RetryState): number =>
  Math.max(0, totalAttempts - trail.reduce((sum, { attempts }) => sum + attempts, 0))

/** A copy cannot be published after it was stored. Clocks may differ by one hour, as in Kafka (`message.timestamp.after.max.ms`). */
const maxClockSkewMillis = 3_600_000

const plausible = (value: HeaderValues.HeaderValue, record: ConsumerRecord): number => {
  const published = timestamp(value)
  return published === undefined || published > record.timestamp + maxClockSkewMillis ? record.timestamp : published
}

const maxAttempts = 1_000_000_000

/** Reads the failures of earlier tiers. A tier without an exception header did not fail. */
const trailOf = (headers: OwnHeaders, tier: number): ReadonlyArray<TierFailure> => {
  const trail: Array<TierFailure> = []
  for (let passed = 0; passed < tier; passed++) {
    const exceptionClass = HeaderValues.text(headers.get(Names.tierException(passed)))
    if (exceptionClass === undefined) continue
    trail.push({
      tier: passed,
      exceptionClass,
      exhaustedAtMillis: timestamp(headers.get(Names.tierExhaustedAt(passed))) ?? 0,
      attempts: wholeNumber(headers.get(Names.tierAttempts(passed)), 0, maxAttempts) ?? 0
    })
  }
  return trail
}
