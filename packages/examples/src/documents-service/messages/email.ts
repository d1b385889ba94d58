/** A request to send an email. */
import { DateTime, Effect, Schema } from "effect"

/** The values that a template is rendered with. */
export const TemplateVariables = Schema.Record(Schema.String, Schema.Json)
export type TemplateVariables = typeof TemplateVariables.Type

/** `HIGH`: a person waits for it, as for a new password. */
export const EmailPriority = Schema.Literals(["HIGH", "NORMAL", "LOW"])
export type EmailPriority = typeof EmailPriority.Type

export class EmailNotificationMessage extends Schema.Class<EmailNotificationMessage>("EmailNotificationMessage")({
  /** The address of the recipient. */
  to: Schema.NonEmptyString,
  subject: Schema.String,
  /** The name of the template, without its extension. */
  templateName: Schema.NonEmptyString,
  templateVariables: TemplateVariables,
  priority: EmailPriority,
  /** When the email was asked for. */
  requestedAt: Schema.DateTimeUtcFromString,
  /** The user it is about. */
  userId: Schema.optionalKey(Schema.String),
  /** The event that asked for it. */
  correlationId: Schema.optionalKey(Schema.String)
}) {
  /** A copy about this user. */
  forUser(userId: string): EmailNotificationMessage {
    return new EmailNotificationMessage({ ...this, userId })
  }
  /** A copy that this event asked for. */
  withCorrelationId(correlationId: string): EmailNotificationMessage {
    return new EmailNotificationMessage({ ...this, correlationId })
  }
}

const withPriority =
  (priority: EmailPriority) =>
  (to: string, subject: string, templateName: string, templateVariables: TemplateVariables) =>
    Effect.map(
      DateTime.now,
      (requestedAt) =>
        new EmailNotificationMessage({ to, subject, templateName, templateVariables, priority, requestedAt })
    )

/** An email of priority `NORMAL`. */
export const of = withPriority("NORMAL")

/** An email of priority `HIGH`. */
export const highPriority = withPriority("HIGH")
