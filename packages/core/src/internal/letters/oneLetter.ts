/**
 * One dead letter in full, with key and value as the binding's serdes read them today.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { DecodedDeadLetter } from "../../DeadLetterList.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type * as DeadLetterSelection from "../../DeadLetterSelection.ts"
import type { InvalidArgument } from "../../Replay.ts"
import type * as Serde from "../../Serde.ts"
import * as Decoding from "../record/decoding.ts"
import * as Preparing from "../record/preparing.ts"
import * as Arguments from "../replay/arguments.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import { LetterHistory } from "./letterHistory.ts"
import { type LettersTarget, ofUnreadable, read } from "./lettersTarget.ts"

/** Longest wait for a schema, which an outage of its source may hold back for as long as it lasts. */
export const preparationMillis = 10_000

export interface Serdes {
  readonly key: Serde.Any
  readonly value: Serde.Any
}

/** Undefined when there is no record at the position. */
export const letter = Effect.fnUntraced(function* (
  target: LettersTarget,
  serdes: Serdes,
  asked: DeadLetterSelection.Position
): Effect.fn.Return<DecodedDeadLetter | undefined, BrokerError | InvalidArgument> {
  const position = yield* Arguments.position("letter", "position", asked)
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const history = new LetterHistory(target)
      const loaded = yield* ReplayProgress.load(target, yield* target.broker.admin, history.add)
      const found = yield* at(target, serdes, loaded, position)
      if (found === undefined || found.unreadable !== undefined) return found
      const { partition, offset } = position
      const shown = [{ partition, offset, deadLetteredMillis: found.letter.dltTimestamp }]
      const [told] = yield* history.of(loaded.scan, shown)
      return { ...found, history: told!.history }
    })
  )
})

/** The same, without its history. */
export const at = Effect.fnUntraced(function* (
  target: LettersTarget,
  serdes: Serdes,
  { partitions, scan }: ReplayProgress.ReplayProgress,
  { partition, offset }: DeadLetterSelection.Position
): Effect.fn.Return<DecodedDeadLetter | undefined, BrokerError> {
  const found = partitions.find((progress) => progress.partition === partition)
  if (found === undefined || offset < found.logStart || offset >= found.logEnd) return undefined
  const range = { topic: target.deadLetterTopic, partition, from: offset, to: offset + 1n }
  const [page] = yield* Stream.runCollect(
    Stream.filter(scan.pages(range), ({ records, unreadable }) => records.length > 0 || unreadable !== undefined)
  )
  if (page === undefined) return undefined
  const { unreadable, records } = page
  if (unreadable !== undefined)
    return { ...ofUnreadable(unreadable), unreadable, key: undefined, value: undefined, history: [] }
  const record = records[0]!
  const stated = read(target, found, record)
  return { ...stated, history: [], ...(yield* decoded(serdes, stated.letter)) }
})

/** Key and value of a letter, as the serdes read them once they have what they need. */
export const decoded = Effect.fnUntraced(function* (serdes: Serdes, letter: DeadLetterRecord) {
  const { topic, partition, offset, timestamp } = letter.record
  const { key, value, headers } = letter
  const record = { topic, partition, offset, timestamp, key, value, headers }
  yield* prepare(serdes, record)
  return {
    key: Decoding.read(serdes.key, record.key, record, "key"),
    value: Decoding.read(serdes.value, record.value, record, "value")
  }
})

/** Waits for what the serdes need. After the longest wait they decode without it, and say what is missing. */
const prepare = (serdes: Serdes, record: ConsumerRecord): Effect.Effect<void> => {
  const missing = Preparing.make(serdes)?.(record) ?? []
  return Effect.asVoid(Effect.timeoutOption(Effect.all(missing, { discard: true }), preparationMillis))
}
