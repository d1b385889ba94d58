/**
 * Reads the figures of one binding from Effect's metric registry.
 */
import { Metrics } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type * as Answers from "../Answers.ts"
import { countsOf } from "./answersOf.ts"

interface Named {
  readonly cluster: string
  readonly name: string
}

/** Undefined when the binding has no counters: metrics are off, or it was never started. */
export const read = (context: Context.Context<never>, binding: Named): Answers.MetricsSummary | undefined => {
  const all = seriesOf(context, binding)
  const of = (definition: Metrics.Definition) => all.filter(({ id }) => id === definition.name)
  const { definitions } = Metrics
  const times = of(definitions.processingDuration)
  if (times.length === 0) return undefined
  const counts = (definition: Metrics.Definition, label: string) => countsOf(sumsBy(of(definition), label))
  const total = (definition: Metrics.Definition) => of(definition).reduce((sum, each) => sum + valueOf(each), 0)
  const [depth] = of(definitions.deadLetterDepth)
  return {
    processed: total(definitions.recordsProcessed),
    failed: total(definitions.recordsFailed),
    failedByException: counts(definitions.recordsFailed, "exception"),
    routed: total(definitions.recordsRouted),
    routedByTier: counts(definitions.recordsRouted, "tier"),
    deadLettered: total(definitions.recordsDeadLettered),
    deadLetteredByReason: counts(definitions.recordsDeadLettered, "reason"),
    skipped: total(definitions.recordsSkipped),
    publishFailed: total(definitions.publishFailed),
    ...(depth === undefined ? {} : { deadLetterDepth: valueOf(depth) }),
    ...handlerTimes(times)
  }
}

/** The dead letters of each binding, by its key. Reads the registry once, and the state of each binding too: reading that lets the connector ask the cluster for the number. */
export const deadLetters = (context: Context.Context<never>): ReadonlyMap<string, number> => {
  const { containerState, deadLetterDepth } = Metrics.definitions
  const read = Array.from(Context.get(context, Metric.MetricRegistry)).filter(
    ([, { id }]) => id === containerState.name || id === deadLetterDepth.name
  )
  const series = Metric.snapshotUnsafe(Context.add(context, Metric.MetricRegistry, new Map(read)))
  return new Map(
    series
      .filter(({ id }) => id === deadLetterDepth.name)
      .map((each) => [`${each.attributes?.["cluster"]}:${each.attributes?.["binding"]}`, valueOf(each)])
  )
}

type Series = Metric.Metric.Snapshot

/** Only the series of the binding are computed. */
const seriesOf = (context: Context.Context<never>, { cluster, name }: Named): ReadonlyArray<Series> => {
  const own = Array.from(Context.get(context, Metric.MetricRegistry)).filter(
    ([, { attributes }]) => attributes?.["cluster"] === cluster && attributes["binding"] === name
  )
  return Metric.snapshotUnsafe(Context.add(context, Metric.MetricRegistry, new Map(own)))
}

const valueOf = ({ type, state }: Series): number =>
  type === "Counter" ? Number(state.count) : type === "Gauge" ? Number(state.value) : 0

const sumsBy = (series: ReadonlyArray<Series>, label: string): ReadonlyMap<string, number> => {
  const sums = new Map<string, number>()
  for (const each of series) {
    const name = each.attributes?.[label] ?? ""
    sums.set(name, (sums.get(name) ?? 0) + valueOf(each))
  }
  return sums
}

const handlerTimes = (series: ReadonlyArray<Series>) => {
  const states = series.flatMap((each) => (each.type === "Histogram" ? [each.state] : []))
  const calls = states.reduce((sum, { count }) => sum + count, 0)
  if (calls === 0) return { handlerCalls: 0 }
  return {
    handlerCalls: calls,
    handlerMeanMillis: (states.reduce((sum, state) => sum + state.sum, 0) * 1_000) / calls,
    handlerMaxMillis: Math.max(...states.map(({ max }) => max)) * 1_000
  }
}
