/** Queues emails. */
import { Effect } from "effect"
import * as Email from "../messages/email.ts"
import { emails } from "../topics.ts"
import { send } from "./sending.ts"

type Request = Parameters<typeof Email.of>

const queue = (email: Effect.Effect<Email.EmailNotificationMessage>) =>
  Effect.flatMap(email, (message) => send(message, emails))

/** An email that nobody waits for: priority `NORMAL`. */
export const queueEmail = (...request: Request) => queue(Email.of(...request))

/** An email that a person waits for: priority `HIGH`. */
export const queueHighPriorityEmail = (...request: Request) => queue(Email.highPriority(...request))

/** An email about a user: priority `NORMAL`, with the user's id. */
export const queueEmailForUser = (...[to, subject, templateName, variables, userId]: readonly [...Request, string]) =>
  queue(Effect.map(Email.of(to, subject, templateName, variables), (email) => email.forUser(userId)))
