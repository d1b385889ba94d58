/**
 * The copies that a unit publishes by itself, as no handler has failed: claims, and locks that move.
 */
import * as Effect from "effect/Effect"
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as StillOwned from "../publish/stillOwned.ts"
import type { Copy } from "../record/copy.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import { carriedOver, number } from "../record/deadLetterHeaders.ts"
import * as Names from "../record/headerNames.ts"
import * as HeaderValues from "../record/headerValues.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import type { Entry, LockTarget } from "./entry.ts"
import type { UnitOptions } from "./unitOptions.ts"

/** The copy for a lock without a body, or for that of a held record, which goes to the end of its topic. Its lock is added by the caller. */
export const make = (
  options: UnitOptions,
  { keyBytes }: Pick<Entry, "keyBytes">,
  { offset, part }: LockTarget,
  held: ConsumerRecord | undefined
): Copy => {
  const { topic, partition } = options.main
  const nowMillis = options.clock.currentTimeMillisUnsafe()
  const bare = { topic, partition, offset, timestamp: nowMillis, key: keyBytes, value: null, headers: [] }
  return copyOf(options, held ?? bare, part, held === undefined ? [] : held.headers.filter(isKept))
}

const isKept = ({ key }: Header): boolean => !Names.isOrder(key) && !isPosition(key)

const position: ReadonlySet<string> = new Set([
  ...[Names.retryTier, Names.retryAttempt, Names.retryTimestamp],
  ...[Names.copyOwner, Names.compactMark]
])
const isPosition = (key: string): boolean => position.has(key)

/** A dead letter as a held record: it waits in the last retry topic, with all that it says about its failure. */
export const held = (options: UnitOptions, letter: Copy): Copy => {
  const { onRefused, record, compression } = letter
  const copy = copyOf(options, record, options.definition.tiers.topics.length, letter.headers.filter(isKept))
  return { ...copy, onRefused, ...(compression === undefined ? {} : { compression }) }
}

const copyOf = (options: UnitOptions, record: ConsumerRecord, part: number, headers: ReadonlyArray<Header>): Copy => {
  const { definition, main, clock } = options
  const { topic, first } = definition.tiers.topics[part - 1]!
  const delivery = [
    number(Names.retryTier, first),
    number(Names.retryAttempt, 1),
    number(Names.retryTimestamp, clock.currentTimeMillisUnsafe())
  ]
  return {
    partition: main,
    record,
    topic,
    headers: CopyOwner.marked([...headers, ...delivery], topic, definition.groupId),
    toPartition: main.partition,
    onRefused: (error, attempt) => options.onRefused(record, topic, error, attempt)
  }
}

/** The dead letter of a held record: it says what its lock says about its failure. A lock that was made anew from the source says nothing. */
export const letterOfHeld = ({ headers }: ConsumerRecord, letter: Copy, groupId: string): Copy =>
  HeaderValues.last(headers, Names.dltTimestamp) === undefined
    ? letter
    : { ...letter, headers: CopyOwner.marked(headers.filter(isKept), letter.topic, groupId) }

/** The held record as it was read from its source. */
export const headOf = (
  { main: { topic, partition } }: Pick<UnitOptions, "main">,
  offset: bigint,
  held: ConsumerRecord
): ConsumerRecord => {
  if (held.topic === topic) return held
  const { key, value, headers } = held
  return {
    ...{ topic, partition, offset, key, value },
    timestamp: HeaderValues.recordTimestamp(HeaderValues.last(headers, Names.originalTimestamp)) ?? held.timestamp,
    headers: carriedOver(headers)
  }
}

/** A claim of a retry topic. `onStored` gets its offset. */
export const claim = (options: UnitOptions, part: number, epoch: number, onStored: (offset: bigint) => void): Copy => {
  const { topic, partition } = options.main
  const timestamp = options.clock.currentTimeMillisUnsafe()
  const record = { topic, partition, offset: 0n, timestamp, key: null, value: null, headers: [] }
  const copy = copyOf(options, record, part, [])
  return {
    ...copy,
    headers: [...copy.headers, ...OrderHeaders.ofClaim(options.bond, epoch)],
    onStored: ({ offset }) => onStored(offset)
  }
}

/** Publishes a copy, also while its partition is given up. False when the partition, or its drain, ends first. */
export const publish = ({ main, copyPublisher }: UnitOptions, copy: Copy): Effect.Effect<boolean> =>
  Effect.flatMap(StillOwned.confirmed(main), (isOurs) => {
    if (!isOurs) return Effect.succeed(false)
    let answered: boolean | Effect.Effect<boolean> = false
    const published = copyPublisher.publishEach([copy], (_, answer) => {
      answered = answer
    })
    return Effect.andThen(
      published,
      Effect.suspend(() => (typeof answered === "boolean" ? Effect.succeed(answered) : answered))
    )
  })
