/**
 * Turns pages of the audit log into answers that JSON can hold.
 */
import type { AuditView } from "@eventbus/core"
import type * as Answers from "../AuditAnswers.ts"
import { given, isoOf } from "./answersOf.ts"

/** A page. */
export const auditPageOf = ({ entries, next }: AuditView.AuditPage): Answers.AuditPage => ({
  entries: entries.map(({ atMillis, ...entry }) => ({ ...entry, at: isoOf(atMillis) })),
  ...given("next", next)
})
