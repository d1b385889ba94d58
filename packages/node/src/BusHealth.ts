/** How a bus is. */
import type { Health } from "@eventbus/core"
import type { OutboxReason } from "./BusOutbox.ts"

/** How a bus is, from what is known: asking costs no I/O. */
export interface BusHealth {
  /** `UP`, `DEGRADED` where somebody or something holds records back on purpose, `DOWN` where a consumer cannot do its work or the bus does not run. */
  readonly status: Health.Status
  /** Liveness: false only where a restart of this process can help. */
  readonly live: boolean
  /** Readiness: each started consumer consumes, and nothing holds it; a dispatcher of the outbox has reached its database. */
  readonly ready: boolean
  /** Everything that is not as it should be, the worst first. */
  readonly reasons: ReadonlyArray<{
    /** Its kind, such as `ClusterUnreachable`; `NotRunning` for a bus that does not run; `OutboxDown` and `OutboxDegraded` for its dispatcher. */
    readonly type: Health.Reason["_tag"] | OutboxReason["type"] | "NotRunning"
    /** The same in words. */
    readonly message: string
  }>
}
