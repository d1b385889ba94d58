/**
 * Registers series in Effect's metric registry. An exporter reads their values lazily, and `end` removes them all.
 */
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { Definition } from "../../Metrics.ts"

export type Labels = Readonly<Record<string, string>>

type OfKind<Kind> = Definition & { readonly kind: Kind }

export interface Series {
  readonly counter: (definition: OfKind<"counter">, labels: Labels, read: () => number) => void
  readonly gauge: (definition: OfKind<"gauge">, labels: Labels, read: () => number) => void
  readonly histogram: (definition: OfKind<"histogram">, labels: Labels, read: () => Metric.HistogramState) => void
  /** One counter for each pair of label values, registered at its first use. The answered function adds `by` to the counter of a pair. */
  readonly counters: (
    definition: OfKind<"counter">,
    labels: (first: string, second: string) => Labels
  ) => (by: number, first?: string, second?: string) => void
  /** Removes all series and ignores later registrations. Code that still counts has no effect. */
  readonly end: () => void
}

/** Registers series in the metric registry of `context`. */
export const make = (context: Context.Context<never>): Series => {
  const registrations: Array<Metric.Registration> = []
  let ended = false

  const register = <State>(metric: Metric.Metric<number, State>, get: () => State) => {
    if (ended) return
    registrations.push(Metric.registerUnsafe(metric, context, { get, update: ignored, modify: ignored }))
  }
  const options = ({ description, unit }: Definition, labels: Labels) => ({
    description,
    attributes: unit === undefined ? labels : { ...labels, unit }
  })

  const counter: Series["counter"] = (definition, labels, read) =>
    register(Metric.counter(definition.name, { ...options(definition, labels), incremental: true }), () => ({
      count: read(),
      incremental: true
    }))

  return {
    counter,
    gauge: (definition, labels, read) =>
      register(Metric.gauge(definition.name, options(definition, labels)), () => ({ value: read() })),
    histogram: (definition, labels, read) =>
      register(Metric.histogram(definition.name, { ...options(definition, labels), boundaries: [] }), read),
    counters: (definition, labels) => {
      const counts = new Map<string, Count>()
      let last: Count | undefined
      return (by, first = "", second = "") => {
        // Successive records mostly count for the same series.
        if (last === undefined || last.first !== first || last.second !== second) {
          const key = `${first.length}:${first}${second}`
          last = counts.get(key)
          if (last === undefined) {
            const fresh: Count = { first, second, count: 0 }
            last = fresh
            counts.set(key, fresh)
            counter(definition, labels(first, second), () => fresh.count)
          }
        }
        last.count += by
      }
    },
    end: () => {
      ended = true
      for (const registration of registrations.splice(0)) registration.remove()
    }
  }
}

/** The value of one series of a counter. */
interface Count {
  readonly first: string
  readonly second: string
  count: number
}

const ignored = () => {}
