/**
 * Rules about figures (ruling 75): what somebody reads agrees with the history and with the broker's logs at the same moment.
 */

import { figureKey } from "../history/figures.ts"
import { depthRules } from "./depthRules.ts"
import type { FigureRule, Read } from "./FigureRule.ts"
import { gaugeRules } from "./gaugeRules.ts"

const counters = [
  ...["eventbus.records.processed", "eventbus.records.failed", "eventbus.records.dlq", "eventbus.records.routed"],
  ...["eventbus.records.skipped", "eventbus.records.gone", "eventbus.circuit.transitions", "eventbus.publish.failed"],
  ...["eventbus.poll.interval.safety.triggered", "eventbus.retry.count.count", "eventbus.retry.count.sum"],
  ...["kafka.consumer.records.consumed", "messaging.client.consumed.messages", "messaging.client.sent.messages"]
]

const nameOf = (key: string): string => key.slice(0, key.indexOf(" "))

/** A counter counts what the process reported. */
const counted: FigureRule["check"] = ({ process, series }, book) => {
  const { counts } = book.of(process)
  for (const [key, value] of series) {
    if (!counters.includes(nameOf(key))) continue
    const expected = counts.get(key) ?? 0
    if (value !== expected) return `${process}: ${key} is ${value}, and the history has ${expected}`
  }
  for (const [key, expected] of counts)
    if (counters.includes(nameOf(key)) && expected > 0 && !series.has(key))
      return `${process}: ${key} is missing, and the history has ${expected}`
  return undefined
}

/** Sums of a figure by a label. */
const sums = (series: Read["series"], name: string, labelAt: (labels: ReadonlyArray<string>) => string) => {
  const found = new Map<string, number>()
  for (const [key, value] of series) {
    if (nameOf(key) !== name) continue
    const at = labelAt(key.split(" ").slice(1))
    found.set(at, (found.get(at) ?? 0) + value)
  }
  return found
}

/** No record counts as handled that no handler has handled, and no copy as stored that is in no log. */
const done: FigureRule["check"] = ({ process, series }, book) => {
  const { handled, sent, stored } = book.of(process)
  const processed = sums(series, "eventbus.records.processed", ([, topic, partition]) => `${topic}/${partition}`)
  for (const [partition, value] of processed) {
    const most = handled.get(partition) ?? 0
    if (value > most) return `${process}: ${value} records of ${partition} count as handled, and handlers did ${most}`
  }
  for (const [topic, value] of sums(series, "messaging.client.sent.messages", ([, target]) => target!)) {
    const most = Math.min(sent.get(topic) ?? 0, stored.get(topic) ?? 0)
    if (value > most) return `${process}: ${value} copies to ${topic} count as stored, and there are ${most}`
  }
  return undefined
}

/**
 * Calls of handlers and the time in them, which a transaction's requests are no part of. A call that the end of its partition interrupts is not counted as a rule, and one
 * that its processing budget interrupts is. The requests to the store of an idempotent binding are a part of its calls,
 * also of one that waits for the store until its budget is used up.
 */
const durations: FigureRule["check"] = ({ process, series }, { scenario, of }) => {
  const { counts } = of(process)
  for (const { name, listener, isIdempotent } of scenario.bindings) {
    const count = series.get(figureKey("eventbus.processing.duration.count", name))
    const sum = series.get(figureKey("eventbus.processing.duration.sum", name))
    if (count === undefined || sum === undefined) continue
    const known = (what: string) => counts.get(figureKey(what, name)) ?? 0
    const [calls, cut] = [known("whole calls"), known("cut calls")]
    if (count < calls || (count > calls + cut && !isIdempotent))
      return `${process}: ${name} counts ${count} calls, and there were ${calls}, and ${cut} that were interrupted`
    const millis = Math.round(sum * 1000)
    const [least, most] = [known("whole millis"), known("whole millis") + known("cut millis")]
    if ((millis > most && !isIdempotent) || (millis < least && listener !== "transactional"))
      return `${process}: calls of ${name} took ${millis} ms, and there were ${least} to ${most} ms`
  }
  return undefined
}

export const figureRules: ReadonlyArray<FigureRule> = [
  { name: "counted", check: counted },
  ...gaugeRules,
  ...depthRules,
  { name: "done", check: done },
  { name: "durations", check: durations }
]
