/**
 * Pages of dead letters, the newest first over all partitions. Each partition is read backwards from where the page before ended, and the partition whose next dead letter
 * is the newest is shown next.
 */
import { Effect } from "effect"
import type { PartitionOffsets } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { states as allStates, type Query, type SummaryPage } from "../../DeadLetterList.ts"
import type { InvalidArgument } from "../../Replay.ts"
import * as Fingerprint from "../failure/fingerprint.ts"
import * as Arguments from "../replay/arguments.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import { LetterHistory } from "./letterHistory.ts"
import type { LettersTarget } from "./lettersTarget.ts"
import * as PageCursor from "./pageCursor.ts"
import { type Budget, PartitionTail } from "./partitionTail.ts"
import * as Summaries from "./summaries.ts"

const defaultLimit = 50
const largestLimit = 500

/** A page of a query that few dead letters meet ends after so many, and the next one goes on. */
const mostRecords = 5_000
const mostBytes = 32 * 1024 * 1024

/** The first blocks of all partitions take about so much, or one letter of each: without it nobody knows which letter is the newest. */
const firstBytes = 16 * 1024 * 1024

export const page = Effect.fnUntraced(function* (
  target: LettersTarget,
  asked: Query = {}
): Effect.fn.Return<SummaryPage, BrokerError | InvalidArgument> {
  const query = yield* Arguments.options("letters", "query", asked, queryNames)
  const before = yield* checked(query)
  const { limit = defaultLimit } = query
  const matches = Summaries.matcher(query)
  const budget: Budget = { records: mostRecords, bytes: mostBytes }
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const history = new LetterHistory(target)
      const { partitions, scan } = yield* ReplayProgress.load(target, yield* target.broker.admin, history.add)
      if (before !== undefined && !isOf(before, partitions)) return yield* noCursor(query.before)
      const firstBlock = Math.ceil((limit * 1.25) / Math.max(1, partitions.length)) + 4
      const tails = partitions.map((progress) => {
        // A partition that the cursor leaves out was added later, or somebody has cut the cursor: no letter of it was shown.
        const upTo = before?.[progress.partition] ?? progress.logEnd
        return new PartitionTail(progress, upTo, firstBlock)
      })
      const reading = { scan, target, matches, budget }
      const unread = tails.filter(({ isRead }) => !isRead)
      yield* Effect.forEach(unread, (tail) => tail.refill(reading, firstBytes / unread.length), {
        ...{ concurrency: 4, discard: true }
      })
      budget.bytes = mostBytes
      const letters: Array<Summaries.Shown> = []
      while (letters.length < limit) {
        const tail = newestOf(tails)
        if (tail === undefined) break
        const next = tail.take()
        if (next !== undefined) letters.push(next)
        else if (budget.records <= 0 || budget.bytes <= 0) break
        else yield* tail.refill(reading, budget.bytes)
      }
      const shownFrom = tails.map((tail) => tail.shownFrom)
      return {
        letters: yield* history.of(scan, letters),
        next: newestOf(tails) === undefined ? undefined : PageCursor.write(shownFrom)
      }
    })
  )
})

/** The partition whose next dead letter is the newest; undefined when all are shown. */
const newestOf = (tails: ReadonlyArray<PartitionTail>): PartitionTail | undefined => {
  let newest: PartitionTail | undefined
  for (const tail of tails) {
    if (tail.nextMillis > (newest?.nextMillis ?? Number.NEGATIVE_INFINITY)) newest = tail
  }
  return newest
}

const queryNames = ["fingerprint", "states", "text", "searchesPayload", "before", "limit"] as const

/** Answers the offsets of the cursor. */
const checked = Effect.fnUntraced(function* (query: Query) {
  const { fingerprint, states, text, searchesPayload, before, limit = defaultLimit } = query
  yield* Arguments.flag("letters", "searchesPayload", searchesPayload)
  yield* Arguments.within("letters", "limit", limit, [1, largestLimit])
  yield* Arguments.states("letters", states, allStates)
  if (fingerprint !== undefined && !Fingerprint.isFingerprint(fingerprint))
    return yield* Arguments.refuse("letters", "fingerprint", fingerprint, "a fingerprint such as v1-9f86d081884c7d65")
  if (text !== undefined && (typeof text !== "string" || text === ""))
    return yield* Arguments.refuse("letters", "text", text === "" ? "empty" : text, "a text that is not empty")
  if (before === undefined) return undefined
  const offsets = PageCursor.read(before)
  if (offsets !== undefined) return offsets
  return yield* noCursor(before)
})

const noCursor = (before: unknown) => Arguments.refuse("letters", "before", before, "'next' of the page before")

/**
 * Whether a page of this topic may have ended there. The topic may have got partitions since; it never loses any, and a page ends within the log. A topic that is empty by now
 * has no partitions here.
 */
const isOf = (before: ReadonlyArray<bigint>, partitions: ReadonlyArray<PartitionOffsets>): boolean =>
  partitions.length === 0 ||
  (before.length <= partitions.length &&
    partitions.every(({ partition, logEnd }) => (before[partition] ?? 0n) <= logEnd))
