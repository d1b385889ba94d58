/**
 * A plan as text for people: aligned columns, at most 100 characters wide where names allow.
 */
import type { Plan } from "@eventbus/core"
import * as Duration from "effect/Duration"
import { columns, counted, indent } from "./text.ts"

/** `found` is undefined when no cluster was checked. */
export const planText = (
  plan: Plan.Plan,
  found: ReadonlyArray<readonly [severity: string, message: string]> | undefined
): string =>
  [
    `${plan.binding} on cluster ${plan.cluster}`,
    ...section("topics", columns(plan.topics.map(topicRow))),
    ...section("consumers of a process", columns(plan.consumers.map(consumerRow)), [
      `${counted(plan.clients, "Kafka client")}, consumers and producer`,
      `at most ${counted(plan.memory.records, "record")} or ${bytes(plan.memory.bytes)} fetched and not handled, and one fetch each`
    ]),
    ...section("attempts of a record that always fails", attempts(plan)),
    ...(found === undefined ? [] : section("on the cluster", onCluster(found)))
  ].join("\n")

const section = (title: string, ...blocks: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => [
  indent(1, title),
  ...blocks.flat().map((line) => indent(2, line))
]

const topicRow = ({ topic, role, delayMillis, delaysMillis, partitions, createIfMissing }: Plan.PlannedTopic) => [
  topic,
  role,
  delayMillis === undefined ? "" : delaysText(delaysMillis ?? [delayMillis]),
  partitions === undefined ? "" : counted(partitions, "partition"),
  role === "source" ? "" : createIfMissing ? "created when missing" : "must exist"
]

/** `10s`, or `1s to 30s` where the wait depends on the delivery. */
const delaysText = (delaysMillis: ReadonlyArray<number>): string => {
  const [from, to] = [time(Math.min(...delaysMillis)), time(Math.max(...delaysMillis))]
  return from === to ? to : `${from} to ${to}`
}

const consumerRow = ({ groupId, topics, members }: Plan.PlannedConsumers) => [
  groupId,
  counted(members, "member"),
  topics.join(", ")
]

const attempts = ({ retries, onExhausted }: Plan.Plan): ReadonlyArray<string> => {
  const left = retries.deliveriesInAll - retries.deliveries.length
  return [
    ...columns([
      ["after", "tier", "delivery", "attempts", "topic"],
      ...retries.deliveries.map(({ first, tier, delivery, attempts, topic }) => [
        span(first),
        String(tier),
        String(delivery),
        String(attempts),
        topic
      ])
    ]),
    ...(left > 0 ? [`and ${counted(left, "delivery", "deliveries")} more`] : []),
    `${counted(retries.attempts, "attempt")} in ${counted(retries.deliveriesInAll, "delivery", "deliveries")}; ${ending(onExhausted)} after ${span(retries.exhausted)}`,
    `${time(retries.longestMillis)} when handlers take all of their time`
  ]
}

const ending = (onExhausted: Plan.Plan["onExhausted"]): string =>
  onExhausted === "halt" ? "its partition halts" : "dead letter topic"

const onCluster = (found: ReadonlyArray<readonly [string, string]>): ReadonlyArray<string> =>
  found.length === 0 ? ["nothing is missing"] : columns(found)

const span = ({ earliestMillis, latestMillis }: Plan.TimeRange): string =>
  time(earliestMillis) === time(latestMillis) ? time(latestMillis) : `${time(earliestMillis)} to ${time(latestMillis)}`

/** Rounds to a tenth of a second, and to a second from a minute on. */
const time = (millis: number): string => {
  const precision = millis < 1_000 ? 1 : millis < 60_000 ? 100 : 1_000
  return Duration.format(Duration.millis(Math.round(millis / precision) * precision))
}

const bytes = (count: number): string => {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10))
  return `${Math.round((count / 1024 ** power) * 10) / 10} ${units[power]}`
}
