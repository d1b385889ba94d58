/**
 * Reads the figures of a process at one moment, as an exporter and an operator see them, and the broker's logs at the same moment.
 */
import type { EventBusConnector } from "@eventbus/core"
import { Context, Effect, Metric } from "effect"
import { figureKey, type LogState, labelsOf, type Reading } from "../history/figures.ts"
import { deadLetterTopics, groupOf } from "../scenario/retries.ts"
import type { BindingPlan } from "../scenario/Scenario.ts"
import type * as Cluster from "./cluster.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

/** The metric registry of one process. */
export type Registry = Context.Service.Shape<typeof Metric.MetricRegistry>

/** A figure as a planted bug changes it. */
export type ChangeFigure = (name: string, value: number) => number | undefined

const seriesOf = (registry: Registry, change: ChangeFigure): Map<string, number> => {
  const series = new Map<string, number>()
  for (const { id, type, state, attributes } of Metric.snapshotUnsafe(Context.make(Metric.MetricRegistry, registry))) {
    const labels = labelsOf((attributes ?? {}) as Readonly<Record<string, string>>)
    const add = (name: string, value: number | bigint) => {
      const shown = change(name, Number(value))
      if (shown !== undefined) series.set(figureKey(name, ...labels), shown)
    }
    if (type === "Counter") add(id, state.count)
    if (type === "Gauge") add(id, state.value)
    if (type !== "Histogram") continue
    add(`${id}.count`, state.count)
    add(`${id}.sum`, state.sum)
  }
  return series
}

export interface ReadOptions {
  readonly registry: Registry
  readonly connector: Connector
  readonly memory: Cluster.Memory
  readonly plans: ReadonlyArray<BindingPlan>
  readonly change: ChangeFigure
}

/** One step without a pause, so that all figures are of one moment. */
export const read = ({ registry, connector, memory, plans, change }: ReadOptions): Effect.Effect<Reading> =>
  Effect.map(Effect.context<never>(), (services) => {
    const runSync = Effect.runSyncWith(services)
    const snapshots = runSync(connector.listBindings)
    const series = seriesOf(registry, change)
    const logs = new Map<string, LogState>()
    for (const plan of plans) {
      const snapshot = snapshots.find(({ name }) => name === plan.name)
      for (const { topic, partition } of snapshot?.partitions ?? [])
        logs.set(`${topic}/${partition}`, runSync(logOf(memory, topic, partition, groupOf(plan, topic))))
      for (const letters of deadLetterTopics(plan)) {
        const count = runSync(memory.partitionCount(letters))
        for (let partition = 0; partition < count; partition++)
          logs.set(`${letters}/${partition}`, runSync(logOf(memory, letters, partition, undefined)))
      }
    }
    return { series, snapshots, logs }
  })

const nothing: LogState = { logStart: 0n, logEnd: 0n, committed: undefined, offsets: [] }

const logOf = Effect.fnUntraced(function* (
  memory: Cluster.Memory,
  topic: string,
  partition: number,
  groupId: string | undefined
) {
  // The topic may be gone.
  if ((yield* memory.partitionCount(topic)) <= partition) return nothing
  const { logStart, logEnd } = yield* memory.offsets(topic, partition)
  const committed = groupId === undefined ? undefined : yield* memory.committed(groupId, topic, partition)
  const offsets = (yield* memory.log(topic, partition)).map(({ offset }) => offset)
  return { logStart, logEnd, committed, offsets }
})
