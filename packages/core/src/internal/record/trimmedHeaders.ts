/** Which headers a copy loses, and in which order, when its topic refuses it as too large. */
import type { Header } from "../../ConsumerRecord.ts"
import * as CompactMark from "./compactMark.ts"
import * as CopyOwner from "./copyOwner.ts"
import * as DeadLetterHeaders from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import { withoutOtherFormats } from "./headerSets.ts"
import * as HeaderValues from "./headerValues.ts"
import * as Spring from "./springHeaders.ts"

/**
 * Trims the headers of a copy that its topic refused `times` times as too large (ruling 22). The first time drops error message, stack trace and trail of every set. The
 * second time keeps origin, reason, owner, replays, run, tier and delivery number. The third time keeps owner, tier and delivery number. The fourth time these three
 * become one short header. The user's own headers and the value always stay, and so do those that make the copy the lock of its key.
 */
export const trim = (headers: ReadonlyArray<Header>, times: number): ReadonlyArray<Header> => {
  if (times === 1) return DeadLetterHeaders.withoutDiagnostics(headers).filter(({ key }) => !Spring.isDiagnostic(key))
  if (times > 3) return compacted(headers)
  const kept = times === 2 ? essential : position
  return withoutOtherFormats(headers).filter(
    ({ key }) => kept.has(key) || Names.isOrder(key) || !Names.isRewritten(key)
  )
}

const compacted = (headers: ReadonlyArray<Header>): ReadonlyArray<Header> => {
  const own = withoutOtherFormats(headers).filter(({ key }) => !Names.isRewritten(key))
  const mark = CopyOwner.partsOf(headers)
  if (mark === undefined) return own
  const [tier, attempt] = [Names.retryTier, Names.retryAttempt].map((name) => HeaderValues.last(headers, name))
  const delivery = tier && attempt ? { tier, attempt } : undefined
  return [
    ...own,
    ...headers.filter(({ key }) => Names.isOrder(key)),
    CompactMark.header(mark.topic, mark.groupId, delivery)
  ]
}

/**
 * Without its delivery number, a record would restart its tier each time, without end. Without its owner, other groups that share the topic would handle the copy
 * (ruling 71).
 */
const position: ReadonlySet<string> = new Set([Names.retryTier, Names.retryAttempt, Names.copyOwner])

const essential: ReadonlySet<string> = new Set([
  ...position,
  Names.originalTopic,
  Names.originalPartition,
  Names.originalOffset,
  Names.dltReason,
  Names.replayCount,
  Names.runId
])
