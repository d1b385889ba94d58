/**
 * The log lines about parked keys. None quotes a key.
 */
import type { EventBusEvent } from "../../EventBusEvent.ts"
import type { GivenDecision } from "../../ParkedKeys.ts"
import { pluralize } from "../base/pluralize.ts"

type KeyEvent = Extract<EventBusEvent, { readonly _tag: "KeyDecided" | "RetentionUnknown" }>

export const of = (event: KeyEvent): string => (event._tag === "KeyDecided" ? decided(event) : retentionUnknown(event))

export const decided = ({ at, decision }: GivenDecision): string => {
  if (decision.kind === "accept-loss") {
    return `An operator accepted the loss of what follows the stranded key ${at.topic}-${at.partition}@${at.offset}: ${decision.reason}`
  }
  const done = decision.kind === "skip" ? "skipped" : "retried"
  const where = `${at.topic}-${at.partition}@${at.offset}`
  return `An operator ${done} the record ${where}, which holds its key: ${decision.reason}`
}

/** Keys that a line names. */
const mostNamed = 10

type RecordsGone = Extract<EventBusEvent, { readonly _tag: "RecordsGone" }>

/** Records that waited behind parked keys are not in the source any more. */
export const followersGone = ({
  topic,
  partition,
  from,
  to,
  gone,
  cause,
  behind = [],
  keys = 0
}: RecordsGone): string => {
  const named = behind.slice(0, mostNamed).map(({ offset }) => `${topic}-${partition}@${offset}`)
  const where = [...named, ...(keys > named.length ? [`${keys - named.length} more`] : [])].join(", ")
  const lost = gone === undefined ? "Records may be lost" : `${pluralize(Number(gone), "record")} lost`
  const waited = `that waited behind ${pluralize(keys, "parked key")} (${where})`
  return `${lost} to ${cause} ${waited}: offsets ${from} to ${to - 1n} of '${topic}' no longer have them. The keys go on behind them`
}

/** Locks went with the records of retry topics. */
export const locksGone = (event: Extract<EventBusEvent, { readonly _tag: "LocksGone" }>): string => {
  const { topics, keys, topic, partition, from, to } = event
  const named = topics.map((each) => `'${each}'`).join(", ")
  return `Records of retry topic ${named} are gone that nobody had read, and the locks of up to ${pluralize(keys, "parked key")} with them. Records of these keys at offsets ${from} to ${to - 1n} of ${topic}-${partition} were not handled, and are passed over. To handle them, stop the group and reset its offset of ${topic}-${partition} to ${from}: what is done from there on is handled again`
}

/** The rules about the age of waiting records are not kept. */
const retentionUnknown = ({ topic, error }: Extract<EventBusEvent, { readonly _tag: "RetentionUnknown" }>): string =>
  `The retention of topic '${topic}' is not known, so no key is given up before Kafka deletes the records that wait behind it: ${error?.message ?? "the cluster did not answer within 5 seconds"}. Grant DescribeConfigs on the topic`
