/**
 * The bond of a replayed record: cluster, topic, partition and timestamp that the replay published it with (ruling 70).
 *
 * Another record with the headers of the replay (one that a handler publishes, one behind a bridge to another cluster, the same one published again) has another
 * position or time. Its bond is broken, and it is a new record for every group.
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

/** Where and when a replay publishes a copy. */
export interface Target {
  readonly clusterId: string
  readonly topic: string
  readonly partition: number
  /** The timestamp of the copy, epoch milliseconds. */
  readonly timestamp: number
}

/** How far the time that a topic stamps may be from the time in the bond, in either direction. */
const maxAppendDelayMillis = 300_000

const encoder = new TextEncoder()

export const header = (target: Target): Header => ({
  key: Names.replayBond,
  value: encoder.encode(`${prefixOf(target)}${target.timestamp}`)
})

/** Whether the record is the one that the replay published. A topic that stamps its own time changes the timestamp by at most five minutes. */
export const holds = (record: ConsumerRecord, clusterId: string): boolean => {
  const bond = HeaderValues.text(HeaderValues.last(record.headers, Names.replayBond))
  if (bond === undefined || clusterId === "") return false
  const prefix = prefixOf({ clusterId, topic: record.topic, partition: record.partition })
  if (!bond.startsWith(prefix) || !decimal.test(bond.slice(prefix.length))) return false
  const difference = Math.abs(Number(bond.slice(prefix.length)) - record.timestamp)
  return record.timestampType === "LogAppendTime" ? difference <= maxAppendDelayMillis : difference === 0
}

const decimal = /^\d{1,16}$/

/** A topic's name holds no slash, and topic and number stand last, so no two targets have one text. */
const prefixOf = ({ clusterId, topic, partition }: Omit<Target, "timestamp">): string =>
  `${clusterId}/${topic}/${partition}/`
