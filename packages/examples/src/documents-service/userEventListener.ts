/** Tells users by email of what has happened to them. */
import { EventHandler } from "@eventbus/messaging"
import { DateTime, Effect, Schema } from "effect"
import * as Events from "./events.ts"
import type { TemplateVariables } from "./messages/email.ts"
import { queueEmail, queueHighPriorityEmail } from "./services/emailMessageProducer.ts"

/** The broker did not keep the email. The event is tried again. */
export class EmailNotQueued extends Schema.TaggedError<EmailNotQueued>()("EmailNotQueued", { reason: Schema.String }) {
  override get message(): string {
    return `The email was not queued: ${this.reason}`
  }
}

interface Person {
  readonly email: string
  readonly firstName: string
}

/** An event is handled once its email is in the queue. */
const mail =
  (queue: typeof queueEmail) =>
  ({ email, firstName }: Person, subject: string, template: string, variables: TemplateVariables = {}) =>
    Effect.flatMap(queue(email, subject, template, { firstName, ...variables }), ({ success, errorMessage }) =>
      success ? Effect.void : Effect.fail(new EmailNotQueued({ reason: errorMessage ?? "" }))
    )

const soon = mail(queueHighPriorityEmail)
const later = mail(queueEmail)

const handlers = [
  EventHandler.make(Events.userRegistered, (user) =>
    soon(user, "Confirm your address", "email-verification", { token: user.token })
  ),
  EventHandler.make(Events.userDeletionScheduled, (user) =>
    later(user, "Your account will be deleted", "deletion-scheduled", {
      on: DateTime.formatIsoDateUtc(user.deletionDate)
    })
  ),
  EventHandler.make(Events.userDeleted, (user) => later(user, "Your account is deleted", "account-deleted")),
  EventHandler.make(Events.passwordChanged, (user) => soon(user, "Your password has changed", "password-changed")),
  EventHandler.make(Events.passwordResetRequested, (user) =>
    soon(user, "Choose a new password", "password-reset", { token: user.token })
  ),
  EventHandler.make(Events.passwordResetSuccessful, (user) =>
    soon(user, "Your new password is set", "password-reset-successful")
  ),
  EventHandler.make(Events.welcome, (user) => later(user, "Welcome", "welcome"))
]

export const userEventListener = EventHandler.consumer(Events.userEvents, handlers, { groupId: "user-events-group" })
