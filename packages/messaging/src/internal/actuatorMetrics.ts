/** Metrics of messages in the form of Spring's Actuator. */
import type * as Metric from "effect/Metric"
import { priority } from "../MessageBrokerType.ts"
import { counters, timers } from "./metricNames.ts"

/** One metric, over all series that the tags select. */
export interface Answer {
  readonly name: string
  readonly description: string | undefined
  readonly baseUnit?: "seconds"
  readonly measurements: ReadonlyArray<{ readonly statistic: "COUNT" | "TOTAL_TIME" | "MAX"; readonly value: number }>
  readonly availableTags: ReadonlyArray<{ readonly tag: string; readonly values: ReadonlyArray<string> }>
}

type Snapshots = ReadonlyArray<Metric.Metric.Snapshot>
type Snapshot = Snapshots[number]

const isOfMessages = ({ id }: Snapshot): boolean => id.includes(".messaging.")

/** The names of the metrics of messages, in order. */
export const names = (all: Snapshots): ReadonlyArray<string> =>
  Array.from(new Set(all.filter(isOfMessages).map(({ id }) => id))).sort()

/** The metric of a name, or all whose name begins with the part before a `*`. Undefined when there is none with these tags. */
export const answer = (
  all: Snapshots,
  name: string,
  tags: ReadonlyArray<string>
): Answer | ReadonlyArray<Answer> | undefined => {
  const selected = all.filter((series) => isOfMessages(series) && tags.every((tag) => has(series, tag)))
  if (!name.endsWith("*")) return answerOf(name, selected) ?? zeroOf(name)
  const found = names(selected).filter((each) => each.startsWith(name.slice(0, -1)))
  return found.length === 0 ? undefined : found.flatMap((each) => answerOf(each, selected) ?? [])
}

const has = ({ attributes }: Snapshot, tag: string): boolean => {
  const separator = tag.indexOf(":")
  return attributes?.[tag.slice(0, separator)] === tag.slice(separator + 1)
}

const answerOf = (name: string, selected: Snapshots): Answer | undefined => {
  const series = selected.filter(({ id }) => id === name)
  const [first] = series
  if (first === undefined) return undefined
  const isTimer = first.type === "Histogram"
  return {
    ...{ name, description: first.description },
    ...(isTimer && { baseUnit: "seconds" as const }),
    measurements: isTimer ? ofTimers(series) : [{ statistic: "COUNT", value: sum(series, countOf) }],
    availableTags: ["topic", "operation"].map((tag) => ({ tag, values: valuesOf(series, tag) }))
  }
}

/** A metric is made with its first value. Before that its name answers 0, so that a dashboard does not take it for a typing error. */
const zeroOf = (name: string): Answer | undefined => {
  const suffix = priority.flatMap((type) => {
    const prefix = `${type.toLowerCase()}.messaging.`
    return name.startsWith(prefix) ? [name.slice(prefix.length)] : []
  })[0]
  const ofName = (each: { readonly suffix: string }) => each.suffix === suffix
  const timer = Object.values(timers).find(ofName)
  const known = timer ?? Object.values(counters).find(ofName)
  return (
    known && {
      ...{ name, description: known.description },
      ...(timer !== undefined && { baseUnit: "seconds" as const }),
      measurements: timer === undefined ? [{ statistic: "COUNT", value: 0 }] : ofTimers([]),
      availableTags: ["topic", "operation"].map((tag) => ({ tag, values: [] }))
    }
  )
}

const ofTimers = (series: Snapshots): Answer["measurements"] => {
  const states = series.flatMap((each) => (each.type === "Histogram" ? [each.state] : []))
  return [
    { statistic: "COUNT", value: sum(states, ({ count }) => count) },
    { statistic: "TOTAL_TIME", value: sum(states, (state) => state.sum) },
    { statistic: "MAX", value: Math.max(0, ...states.map(({ max }) => max)) }
  ]
}

const countOf = (series: Snapshot): number => (series.type === "Counter" ? Number(series.state.count) : 0)

const sum = <A>(all: ReadonlyArray<A>, of: (each: A) => number): number =>
  all.reduce((total, each) => total + of(each), 0)

const valuesOf = (series: Snapshots, tag: string): ReadonlyArray<string> =>
  Array.from(new Set(series.flatMap(({ attributes }) => attributes?.[tag] ?? []))).sort()
