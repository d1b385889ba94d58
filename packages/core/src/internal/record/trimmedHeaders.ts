/** Which headers a copy loses, and in which order, when its topic refuses it as too large. */
import type { Header } from "../../ConsumerRecord.ts"
import * as DeadLetterHeaders from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import { withoutOtherFormats } from "./headerSets.ts"
import * as Spring from "./springHeaders.ts"

/**
 * Trims the headers of a copy that its topic refused `times` times as too large (ruling 22). The first time drops error message, stack trace and trail of every set. The
 * second time keeps origin, reason, owner, replays, tier and delivery number. The third time keeps owner, tier and delivery number, the fourth time only tier and
 * delivery number. The user's own headers and the value always stay.
 */
export const trim = (headers: ReadonlyArray<Header>, times: number): ReadonlyArray<Header> => {
  if (times === 1) return DeadLetterHeaders.withoutDiagnostics(headers).filter(({ key }) => !Spring.isDiagnostic(key))
  const kept = times === 2 ? essential : times === 3 ? position : deliveryNumber
  return withoutOtherFormats(headers).filter(({ key }) => kept.has(key) || !Names.isRewritten(key))
}

/** Without its delivery number, a record would restart its tier each time, without end. */
const deliveryNumber: ReadonlySet<string> = new Set([Names.retryTier, Names.retryAttempt])

/** The owner goes last: without it, other groups that share the topic handle the copy, and with it, the partition would stop (rulings 22 and 71). */
const position: ReadonlySet<string> = new Set([...deliveryNumber, Names.copyOwner])

const essential: ReadonlySet<string> = new Set([
  ...position,
  Names.originalTopic,
  Names.originalPartition,
  Names.originalOffset,
  Names.dltReason,
  Names.replayCount
])
