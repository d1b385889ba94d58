/**
 * The anchors of a plan: letters that it takes, with their times. They tell that a topic was deleted and made again in a cluster that gives topics no ids.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Admin } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"
import type { Options } from "./runOptions.ts"

export type Anchor = Pick<ConsumerRecord, "partition" | "offset" | "timestamp">

export const textOf = ({ partition, offset, timestamp }: Anchor): string => `${partition}@${offset} ${timestamp}`

/** A time of 64 bits has up to 20 digits as a number of JavaScript. */
const form = /^(\d{1,10})@(\d{1,19}) (-?\d{1,20})$/

/** Whether the topic has other records at these positions. A position that retention, a purge or compaction has emptied tells nothing. */
export const areOthers = Effect.fnUntraced(function* (
  { broker, deadLetterTopic: topic, maxBufferedBytes }: Options,
  admin: Admin,
  anchors: ReadonlyArray<string>
): Effect.fn.Return<boolean, BrokerError, Scope.Scope> {
  if (anchors.length === 0) return false
  const logs = yield* ReplayProgress.logOffsetsOf(admin, topic)
  const scan = yield* TopicScan.open({ broker, admin, maxRecordBytes: maxBufferedBytes })
  for (const anchor of anchors) {
    const [, number, position, timestamp] = form.exec(anchor) ?? []
    if (number === undefined) continue
    const [partition, offset] = [Number(number), BigInt(position!)]
    const log = logs.find((each) => each.partition === partition)
    if (log === undefined || offset >= log.logEnd) return true
    if (offset < log.logStart) continue
    const [record] = yield* Stream.runCollect(scan.read({ topic, partition, from: offset, to: offset + 1n }))
    if (record !== undefined && record.timestamp !== Number(timestamp)) return true
  }
  return false
})
