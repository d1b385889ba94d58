/** The connector's series in Effect's metric registry. Each test has its own registry. */
import type { Broker } from "@eventbus/core"
import type { MemoryBroker } from "@eventbus/testkit"
import { Effect, Metric, type Scope } from "effect"
import { scenario } from "../scenarios/bus.ts"

/** A scenario whose metrics are its own. */
export const metered = <E>(
  title: string,
  body: () => Effect.Effect<void, E, MemoryBroker.MemoryBroker | Broker.Broker | Scope.Scope>,
  options?: MemoryBroker.Options
): void => scenario(title, () => Effect.provideService(body(), Metric.MetricRegistry, new Map()), options)

type Labels = Readonly<Record<string, string>>

/** All series of a metric, as they are now. */
const seriesOf = (name: string, labels: Labels) =>
  Effect.map(Metric.snapshot, (all) =>
    all.filter(
      (series) =>
        series.id === name && Object.entries(labels).every(([key, value]) => series.attributes?.[key] === value)
    )
  )

const single = Effect.fnUntraced(function* (name: string, labels: Labels) {
  const [series, ...others] = yield* seriesOf(name, labels)
  if (series === undefined || others.length > 0) {
    return yield* Effect.die(new Error(`${others.length + (series === undefined ? 0 : 1)} series ${name}`))
  }
  return series
})

/** The one series with these labels: the value of a counter or a gauge, the count of a histogram. */
export const valueOf = (name: string, labels: Labels = {}): Effect.Effect<number> =>
  Effect.map(single(name, labels), ({ type, state }) => {
    if (type === "Gauge") return Number(state.value)
    if (type === "Counter" || type === "Histogram") return Number(state.count)
    return Number.NaN
  })

/** Count and sum of the one histogram with these labels. */
export const histogramOf = (name: string, labels: Labels = {}) =>
  Effect.map(single(name, labels), (series) =>
    series.type === "Histogram" ? { count: series.state.count, sum: series.state.sum } : undefined
  )

/** The labels of all series of a metric. */
export const labelsOf = (name: string, labels: Labels = {}) =>
  Effect.map(seriesOf(name, labels), (all) => all.map(({ attributes }) => attributes ?? {}))

/** The names of the metrics that a binding has series of. */
export const namesOf = (binding: string) =>
  Effect.map(Metric.snapshot, (all) => {
    const own = all.filter(
      ({ attributes }) => attributes?.["binding"] === binding || attributes?.["eventbus.binding"] === binding
    )
    return [...new Set(own.map(({ id }) => id))].sort()
  })
