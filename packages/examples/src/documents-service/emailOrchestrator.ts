/** Sends emails. The program's own prints them. */
import { Context, type Effect, Schema } from "effect"
import type { TemplateVariables } from "./messages/email.ts"

/** An email as the mail server gets it. */
export interface EmailMessage {
  readonly to: string
  readonly subject: string
  readonly templateName: string
  readonly templateModel: TemplateVariables
}

/** The mail server refused an email, or is away. */
export class EmailNotSent extends Schema.TaggedError<EmailNotSent>()("EmailNotSent", {
  to: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `The email to ${this.to} was not sent: ${this.reason}`
  }
}

export class EmailOrchestrator extends Context.Service<
  EmailOrchestrator,
  { readonly sendEmail: (email: EmailMessage) => Effect.Effect<void, EmailNotSent> }
>()("@eventbus/examples/EmailOrchestrator") {}
