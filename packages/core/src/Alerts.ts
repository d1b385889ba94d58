/**
 * When a figure is worth an alert: pure, for whoever evaluates the figures (error handling seed "Consumer Lag Alerting", ruling 69). The same limits as rules for
 * Prometheus are in `@eventbus/observability`.
 */

export type Level = "warning" | "critical"

/** A figure above a limit fires; one that equals it does not. */
export interface Limits {
  /** The limit of a warning. */
  readonly warning: number
  /** At least `warning`. */
  readonly critical: number
}

/** Records of a group behind the end of the log (`kafka.consumer.lag`), by kind of topic. */
export const lag = {
  financial: { warning: 100, critical: 1_000 },
  notification: { warning: 500, critical: 5_000 },
  other: { warning: 1_000, critical: 10_000 }
} as const satisfies Readonly<Record<string, Limits>>

/** Records in a dead letter topic, of any kind. */
export const deadLetters: Limits = { warning: 0, critical: 10 }

/** The level of a figure; undefined when there is nothing to say, also of one that is not known (NaN). */
export const evaluate = (figure: number | bigint, { warning, critical }: Limits): Level | undefined =>
  figure > critical ? "critical" : figure > warning ? "warning" : undefined
