/**
 * The audit log as a part of `EventBusAdmin`.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Effect } from "effect"
 *
 * export const ofOrders = Effect.flatMap(EventBusAdmin.EventBusAdmin, (admin) => admin.audit({ binding: "orders" }))
 * ```
 */
import type { Audit, AuditView, BrokerError, Replay } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type { AuditOff } from "./AdminError.ts"
import type * as AuditAnswers from "./AuditAnswers.ts"

/** The operations. */
export interface AdminAudit {
  /** Pages of the audit log, the newest entry first. Fails with `AuditOff` where the program has none. */
  readonly audit: (
    query?: AuditView.AuditQuery
  ) => Effect.Effect<AuditAnswers.AuditPage, AuditOff | BrokerError.BrokerError | Replay.InvalidArgument>
  /** The audit log that the HTTP routes write to; undefined where the layer is built over none. The operations of the service write nothing to it. */
  readonly auditLog: Audit.Audit["Service"] | undefined
}
