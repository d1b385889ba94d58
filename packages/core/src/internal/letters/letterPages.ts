/**
 * Pages of dead letters, the newest first over all partitions. Each partition is read backwards from where the page before ended, and the partition whose next dead letter
 * is the newest is shown next.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { PartitionOffsets } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { states as allStates, type Query, type Summary, type SummaryPage } from "../../DeadLetterList.ts"
import type { InvalidArgument } from "../../Replay.ts"
import * as Fingerprint from "../failure/fingerprint.ts"
import * as Arguments from "../replay/arguments.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import type * as TopicScan from "../replay/topicScan.ts"
import { LetterHistory } from "./letterHistory.ts"
import type { LettersTarget } from "./lettersTarget.ts"
import * as PageCursor from "./pageCursor.ts"
import { type Budget, PartitionTail, type Reading } from "./partitionTail.ts"
import * as Summaries from "./summaries.ts"

const defaultLimit = 50
const largestLimit = 500

/** A page of a query that few dead letters meet ends after so many, and the next one goes on. */
const mostRecords = 5_000
const mostBytes = 32 * 1024 * 1024

/** The first blocks of all partitions take about so much, or one letter of each: without it nobody knows which letter is the newest. */
const firstBytes = 16 * 1024 * 1024

/** A dead letter topic while a page of it is read. */
interface OpenTopic {
  readonly target: LettersTarget
  readonly scan: TopicScan.TopicScan
  readonly history: LetterHistory
  readonly partitions: ReadonlyArray<ReplayProgress.PartitionProgress>
}

/** A partition of one of the topics. */
interface OpenPartition {
  readonly tail: PartitionTail
  readonly reading: Reading
  readonly of: OpenTopic
}

/** A page over one dead letter topic, or over those of several topics of a binding. */
export const page = Effect.fnUntraced(function* (
  targets: ReadonlyArray<LettersTarget>,
  asked: Query = {}
): Effect.fn.Return<SummaryPage, BrokerError | InvalidArgument> {
  const query = yield* Arguments.options("letters", "query", asked, queryNames)
  const before = yield* checked(query, targets.length)
  const { limit = defaultLimit } = query
  const matches = Summaries.matcher(query)
  const budget: Budget = { records: mostRecords, bytes: mostBytes }
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const topics = yield* Effect.forEach(targets, open)
      if (before !== undefined && !topics.every(({ partitions }, at) => isOf(before[at]!, partitions)))
        return yield* noCursor(query.before)
      const count = topics.reduce((sum, { partitions }) => sum + partitions.length, 0)
      const firstBlock = Math.ceil((limit * 1.25) / Math.max(1, count)) + 4
      const tails = topics.map((of, at) =>
        of.partitions.map((progress): OpenPartition => {
          // A partition that the cursor leaves out was added later, or somebody has cut the cursor: no letter of it was shown.
          const upTo = before?.[at]?.[progress.partition] ?? progress.logEnd
          const reading = { scan: of.scan, target: of.target, matches, budget }
          return { tail: new PartitionTail(progress, upTo, firstBlock), reading, of }
        })
      )
      const all = tails.flat()
      const unread = all.filter(({ tail }) => !tail.isRead)
      yield* Effect.forEach(unread, ({ tail, reading }) => tail.refill(reading, firstBytes / unread.length), {
        ...{ concurrency: 4, discard: true }
      })
      budget.bytes = mostBytes
      const letters: Array<Letter> = []
      while (letters.length < limit) {
        const newest = newestOf(all)
        if (newest === undefined) break
        const next = newest.tail.take()
        if (next !== undefined) letters.push({ shown: next, of: newest.of })
        else if (budget.records <= 0 || budget.bytes <= 0) break
        else yield* newest.tail.refill(newest.reading, budget.bytes)
      }
      return {
        letters: yield* withHistory(topics, letters),
        next:
          newestOf(all) === undefined
            ? undefined
            : PageCursor.write(tails.map((each) => each.map(({ tail }) => tail.shownFrom)))
      }
    })
  )
})

const open = Effect.fnUntraced(function* (
  target: LettersTarget
): Effect.fn.Return<OpenTopic, BrokerError, Scope.Scope> {
  const history = new LetterHistory(target)
  const { partitions, scan } = yield* ReplayProgress.load(target, yield* target.broker.admin, history.add)
  return { target, scan, history, partitions }
})

/** A letter of the page. */
interface Letter {
  readonly shown: Summaries.Shown
  readonly of: OpenTopic
}

/** The letters in their order, each with what the journal of its topic tells. */
const withHistory = Effect.fnUntraced(function* (topics: ReadonlyArray<OpenTopic>, letters: ReadonlyArray<Letter>) {
  const told = yield* Effect.forEach(topics, ({ history, scan }, at) =>
    history.of(
      scan,
      letters.flatMap(({ shown, of }) => (of === topics[at] ? [shown] : []))
    )
  )
  const next = told.map((each) => each[Symbol.iterator]())
  return letters.map(({ of }) => {
    const letter: Summary = next[topics.indexOf(of)]!.next().value!
    return of.target.sourceTopic === undefined ? letter : { ...letter, sourceTopic: of.target.sourceTopic }
  })
})

/** The partition whose next dead letter is the newest; undefined when all are shown. */
const newestOf = (partitions: ReadonlyArray<OpenPartition>): OpenPartition | undefined => {
  let newest: OpenPartition | undefined
  for (const each of partitions) {
    if (each.tail.nextMillis > (newest?.tail.nextMillis ?? Number.NEGATIVE_INFINITY)) newest = each
  }
  return newest
}

const queryNames = ["fingerprint", "states", "text", "searchesPayload", "before", "limit"] as const

/** Answers the offsets of the cursor, topic by topic. */
const checked = Effect.fnUntraced(function* (query: Query, topics: number) {
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
  if (offsets?.length === topics) return offsets
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
