/**
 * The answers of the admin API about the audit log. Times are ISO-8601 texts in UTC. No answer has a payload or a secret.
 */
import * as Schema from "effect/Schema"

const optional = Schema.optionalKey

/** An action of somebody, and how it ended. */
export const AuditEntry = Schema.Struct({
  /** Names the action. */
  id: Schema.String,
  /** When the cluster appended the entry. */
  at: Schema.String,
  /** The name of the principal. Absent when nobody knows it. */
  by: optional(Schema.String),
  /** `http`, `console` or `command-line`, as the caller says itself. */
  from: Schema.String,
  /** The name of the host that wrote the entry. */
  host: Schema.String,
  /** The permissions that the caller made use of; where it came to none, those of which it needs one. */
  permissions: Schema.Array(Schema.String),
  /** The name of its route, such as `pause`. */
  action: Schema.String,
  /** `{cluster}:{binding}`, or the name as the request gave it when no binding has it. Absent when it is about none. */
  binding: optional(Schema.String),
  /** The selection or the target, such as `{"tier": 2}`. */
  target: optional(
    Schema.Record(
      Schema.String,
      Schema.Union([Schema.String, Schema.Number, Schema.Boolean, Schema.Array(Schema.String)])
    )
  ),
  reason: optional(Schema.String),
  /** `begun`: no end is known, because it runs, or its process ended, or could not write it. */
  outcome: Schema.Literals(["begun", "done", "refused", "failed"]),
  /** The tag of the error. */
  error: optional(Schema.String),
  /** The id of the plan, run, rehearsal or command that it is about. */
  run: optional(Schema.String),
  /** How many like it were not written since the last one that was. */
  repeats: Schema.Int
})
export type AuditEntry = typeof AuditEntry.Type

/** A page of the audit log, the newest entry first. */
export const AuditPage = Schema.Struct({
  entries: Schema.Array(AuditEntry),
  /** The cursor `before` of the page that follows. Absent on the last one. */
  next: optional(Schema.String)
})
export type AuditPage = typeof AuditPage.Type
