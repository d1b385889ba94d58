/**
 * How a broker is, as an operator or a probe is told.
 */

/** The answer of a broker, or why there is none. */
export interface BrokerHealth {
  /** `UP` when the broker answered and at least one of its nodes is reachable. */
  readonly status: "UP" | "DOWN"
  /** The facts that the broker tells of itself, such as `clusterId`. Each broker has its own names. */
  readonly details: Readonly<Record<string, string | number>>
  /** Why it is DOWN. Absent when UP. Secrets are redacted. */
  readonly error?: string
  /** The class of the error. Absent when UP. */
  readonly errorType?: string
}
