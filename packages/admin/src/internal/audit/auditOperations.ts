/**
 * The audit log of the program, and its pages as answers that JSON can hold.
 */
import { Audit, type AuditView } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AdminAudit } from "../../AdminAudit.ts"
import { AuditOff } from "../../AdminError.ts"
import type * as Answers from "../../AuditAnswers.ts"
import { given, isoOf } from "../answersOf.ts"

/** The operations over the audit log that the program has, if it has one. */
export const make: Effect.Effect<AdminAudit> = Effect.map(Effect.serviceOption(Audit.Audit), (found) => {
  const auditLog = Option.getOrUndefined(found)
  return {
    auditLog,
    audit: (query) =>
      auditLog === undefined ? Effect.fail(new AuditOff()) : Effect.map(auditLog.page(query), auditPageOf)
  }
})

/** A page of the audit log. */
export const auditPageOf = ({ entries, next }: AuditView.AuditPage): Answers.AuditPage => ({
  entries: entries.map(({ atMillis, ...entry }) => ({ ...entry, at: isoOf(atMillis) })),
  ...given("next", next)
})
