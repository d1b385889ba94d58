/**
 * The names of all headers that the connector writes (connector seed §4.7 and §4.12).
 */

export const prefix = "x-eventbus-"

/** Where the record was read first. They stay the same through all tiers. */
export const originalTopic = "x-eventbus-original-topic"
export const originalPartition = "x-eventbus-original-partition"
export const originalOffset = "x-eventbus-original-offset"
export const originalTimestamp = "x-eventbus-original-timestamp"

/** Only the handler sees these; no published record has them. */
const bindingName = "x-eventbus-binding-name"
const receivedTimestamp = "x-eventbus-received-timestamp"
const consumerInstance = "x-eventbus-consumer-instance"

/** The tier of a record (0 is the main topic), the number of its delivery there, and when it was published to that tier. */
export const retryTier = "x-eventbus-retry-tier"
export const retryAttempt = "x-eventbus-retry-attempt"
export const retryTimestamp = "x-eventbus-retry-timestamp"

export const totalAttempts = "x-eventbus-total-attempts"
export const firstFailureTimestamp = "x-eventbus-first-failure-timestamp"
export const lastExceptionClass = "x-eventbus-last-exception-class"
export const lastExceptionMessage = "x-eventbus-last-exception-message"
export const lastExceptionStacktrace = "x-eventbus-last-exception-stacktrace"
/** The causes of the last error, as a JSON array. */
export const lastExceptionCause = "x-eventbus-last-exception-cause"
/** The group of dead letters that failed for the same reason. */
export const lastExceptionFingerprint = "x-eventbus-last-exception-fingerprint"

const ofTier = (suffix: string): ((tier: number) => string) => {
  const names = new Map<number, string>()
  return (tier) => {
    const known = names.get(tier)
    if (known !== undefined) return known
    const name = `x-eventbus-tier${tier}-${suffix}`
    names.set(tier, name)
    return name
  }
}

/** The trail: one set for each tier that failed to handle the record. */
export const tierException = ofTier("exception")
export const tierExhaustedAt = ofTier("exhausted-at")
export const tierAttempts = ofTier("attempts")

/** The whole trail as one JSON array, for bindings with the header set `trailJson`. */
export const trailJson = "x-eventbus-trail"

export const dltReason = "x-eventbus-dlt-reason"
export const dltTimestamp = "x-eventbus-dlt-timestamp"
/** The reason that `Route.deadLetter(reason)` gave. */
export const dltDetail = "x-eventbus-dlt-detail"
/** Which half of the record could not be decoded, and where in it. */
export const decodeTarget = "x-eventbus-decode-target"
export const decodePath = "x-eventbus-decode-path"

/** A replay writes these. They are the only headers that the connector reads on the main topic, and only where the bond holds. */
export const replayCount = "x-eventbus-replay-count"
export const replayGroup = "x-eventbus-replay-group"
export const replayBond = "x-eventbus-replay-bond"

/** The run that published a copy, and the dead letter that it is made of. */
export const runId = "x-eventbus-run-id"
/** The function of the binding that made the value of a copy. It stays with the record, and is shown only. */
export const transformedBy = "x-eventbus-transformed-by"

/** The group that a copy in a retry or dead letter topic belongs to, bound to that topic. */
export const copyOwner = "x-eventbus-copy-owner"
/** Owner, tier and delivery number in one short header, for a copy that has no room for more. */
export const compactMark = "x-eventbus-copy"

/** Order per key (`record/orderHeaders.ts`): they make a copy the lock of its key, or a claim. */
export const orderOffset = "x-eventbus-order-offset"
export const orderHop = "x-eventbus-order-hop"
export const orderKind = "x-eventbus-order-kind"
export const orderEpoch = "x-eventbus-order-epoch"
export const orderNext = "x-eventbus-order-next"
export const orderBond = "x-eventbus-order-bond"

const rewritten: ReadonlySet<string> = new Set([
  originalTopic,
  originalPartition,
  originalOffset,
  originalTimestamp,
  bindingName,
  receivedTimestamp,
  consumerInstance,
  retryTier,
  retryAttempt,
  retryTimestamp,
  totalAttempts,
  firstFailureTimestamp,
  lastExceptionClass,
  lastExceptionMessage,
  lastExceptionStacktrace,
  lastExceptionCause,
  lastExceptionFingerprint,
  dltReason,
  dltTimestamp,
  dltDetail,
  decodeTarget,
  decodePath,
  replayCount,
  replayGroup,
  replayBond,
  runId,
  copyOwner,
  compactMark,
  orderOffset,
  orderHop,
  orderKind,
  orderEpoch,
  orderNext,
  orderBond
])

const trail = /^x-eventbus-(trail|tier\d+-(exception|exhausted-at|attempts))$/

const order: ReadonlySet<string> = new Set([orderOffset, orderHop, orderKind, orderEpoch, orderNext, orderBond])

/** Whether this is a header of order per key. */
export const isOrder = (key: string): boolean => order.has(key)

/** Whether this is a header of the trail, in either form. */
export const isTrail = (key: string): boolean => trail.test(key)

/** Whether the connector rewrites this header for every copy, and never takes it over from the incoming record. */
export const isRewritten = (key: string): boolean => rewritten.has(key) || isTrail(key)
