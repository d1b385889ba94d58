/**
 * The limits at which a value is worth an alert, and the level that it has then (error handling seed "Consumer Lag Alerting", ruling 69). Everything here is pure; the rules
 * for Prometheus in this package have the same limits.
 */

/** How urgent an alert is. */
export type Level = "warning" | "critical"

/** Two limits. A value above a limit raises its alert; a value that equals the limit does not. */
export interface Limits {
  /** Limit of a warning, in records. */
  readonly warning: number
  /** Limit of a critical alert, in records. At least `warning`. */
  readonly critical: number
}

/** Limits of the records that a group has not finished (`kafka.consumer.lag`), by kind of topic. */
export const lag = {
  financial: { warning: 100, critical: 1_000 },
  notification: { warning: 500, critical: 5_000 },
  other: { warning: 1_000, critical: 10_000 }
} as const satisfies Readonly<Record<string, Limits>>

/** Limits of the records in a dead letter topic, of any kind. */
export const deadLetters: Limits = { warning: 0, critical: 10 }

/** The level of a value; undefined when it raises no alert, and for a value that is not known (NaN). */
export const evaluate = (value: number | bigint, { warning, critical }: Limits): Level | undefined =>
  value > critical ? "critical" : value > warning ? "warning" : undefined
