/** Pages of the audit log, the newest entry first. Kafka reads forwards only, so a block of offsets is read at a time. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { AuditEntry, AuditPage, AuditQuery } from "../../AuditView.ts"
import type { Broker } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { InvalidArgument } from "../../Replay.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as BigInts from "../base/bigInts.ts"
import * as PageCursor from "../letters/pageCursor.ts"
import * as Arguments from "../replay/arguments.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"
import * as Entries from "./auditEntries.ts"

const defaultLimit = 50
const largestLimit = 500

/** A page of a query that few entries meet ends after so many, and the next one goes on. */
const mostRecords = 5_000

const smallestBlock = 64n
const largestBlock = 512n

/** An action whose end lies so far behind its beginning is shown as `begun`, too. */
const endWithin = 256n

const readMillis = 30_000

export const page = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topic: string,
  asked: AuditQuery = {}
): Effect.fn.Return<AuditPage, BrokerError | InvalidArgument> {
  const query = yield* Arguments.options("page", "query", asked, ["before", "afterMillis", "binding", "limit"])
  const before = yield* checked(query)
  const found = yield* awaitAtMost(Effect.scoped(read(broker, topic, query, before)), readMillis)
  if (Option.isSome(found)) return found.value
  return yield* new RequestTimedOut({ operation: `Reading topic '${topic}'`, millis: readMillis })
})

const checked = Effect.fnUntraced(function* ({ before, afterMillis, binding, limit = defaultLimit }: AuditQuery) {
  yield* Arguments.within("page", "limit", limit, [1, largestLimit])
  if (afterMillis !== undefined) yield* Arguments.time("page", "afterMillis", afterMillis)
  if (binding !== undefined && (typeof binding !== "string" || binding === ""))
    return yield* Arguments.refuse("page", "binding", binding, "the name of a binding, or {cluster}:{binding}")
  const [offsets, ...others] = (before === undefined ? undefined : PageCursor.read(before)) ?? []
  if (before !== undefined && (offsets?.length !== 1 || others.length > 0))
    return yield* Arguments.refuse("page", "before", before, "the cursor of a page before")
  return offsets?.[0]
})

const read = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topic: string,
  query: AuditQuery,
  before: bigint | undefined
) {
  const { afterMillis = Number.NEGATIVE_INFINITY, binding, limit = defaultLimit } = query
  const admin = yield* broker.admin
  const [offsets] = yield* ReplayProgress.logOffsetsOf(admin, topic)
  const { logStart, logEnd } = offsets ?? { logStart: 0n, logEnd: 0n }
  const scan = yield* TopicScan.open({ broker, admin })
  const range = (from: bigint, to: bigint) => Stream.runCollect(scan.read({ topic, partition: 0, from, to }))

  /** Actions whose end was read. */
  const ended = new Set<string>()
  const shown = (record: ConsumerRecord): AuditEntry | undefined => {
    const entry = Entries.read(record)
    if (entry === undefined) return undefined
    const isOver = entry.outcome === "begun" && ended.has(entry.id)
    if (entry.outcome !== "begun") ended.add(entry.id)
    return isOver || (binding !== undefined && !isOf(entry, binding)) ? undefined : entry
  }

  let position = BigInts.max(BigInts.min(before ?? logEnd, logEnd), logStart)
  for (const record of yield* range(position, BigInts.min(position + endWithin, logEnd))) shown(record)
  const entries: Array<AuditEntry> = []
  let block = smallestBlock
  let left = mostRecords
  while (position > logStart && entries.length < limit && left > 0) {
    const from = BigInts.max(position - block, logStart)
    const records = yield* range(from, position)
    let next = from
    for (const record of records.toReversed()) {
      if (entries.length === limit) {
        next = record.offset + 1n
        break
      }
      if (record.timestamp < afterMillis) return { entries, next: undefined }
      const entry = shown(record)
      if (entry !== undefined) entries.push(entry)
    }
    left -= records.length
    position = next
    block = BigInts.min(block * 2n, largestBlock)
  }
  return { entries, next: position > logStart ? PageCursor.write([[position]]) : undefined }
})

/** A plain name is that of a binding of whatever cluster. */
const isOf = ({ binding }: AuditEntry, name: string): boolean =>
  binding === name || (binding?.endsWith(`:${name}`) ?? false)
