/**
 * The figures of a process as somebody reads them at one moment: its metric series, and the snapshots of its bindings, beside the logs that they are about.
 */
import type { Snapshot } from "@eventbus/core"

/** The values of metric series by `figureKey`. A histogram has two: the number of its values and their sum. */
export type Series = ReadonlyMap<string, number>

export interface Reading {
  readonly series: Series
  readonly snapshots: ReadonlyArray<Snapshot.BindingSnapshot>
  /** The partitions of the snapshots, and those of their dead letter topics, by name. */
  readonly logs: ReadonlyMap<string, LogState>
}

/** A partition on the broker, past every client. */
export interface LogState {
  readonly logStart: bigint
  readonly logEnd: bigint
  /** The offset that the group has committed; undefined when it has not, and for dead letter topics. */
  readonly committed: bigint | undefined
  /** The offsets that a reader of committed records finds. */
  readonly offsets: ReadonlyArray<bigint>
}

/** The name of a series and its labels without those that never differ in a run. */
export const figureKey = (name: string, ...labels: ReadonlyArray<string | number>): string =>
  [name, ...labels].join(" ")

const constant: ReadonlySet<string> = new Set([
  ...["cluster", "unit", "listenerType", "eventbus.cluster", "messaging.system"],
  ...["messaging.operation.name", "messaging.consumer.group.name"]
])

/** The labels of a series that may differ, in the order of its definition. */
export const labelsOf = (attributes: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.keys(attributes).flatMap((name) => (constant.has(name) ? [] : [attributes[name]!]))
