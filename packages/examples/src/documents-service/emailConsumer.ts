/** Sends the emails that were queued. One that cannot be sent is tried again, and then dead-lettered. */
import { MessageConsumer } from "@eventbus/messaging"
import { Effect } from "effect"
import { EmailOrchestrator } from "./emailOrchestrator.ts"
import { emails } from "./topics.ts"

export const emailConsumer = MessageConsumer.make({
  topics: [emails],
  groupId: "email-consumer-group",
  handle: ({ payload: { to, subject, templateName, templateVariables } }) =>
    EmailOrchestrator.use(({ sendEmail }) =>
      sendEmail({ to, subject, templateName, templateModel: templateVariables })
    ).pipe(Effect.tap(() => Effect.logInfo(`Sent '${subject}' to ${to}`)))
})
