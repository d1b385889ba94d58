/** The topics that this program writes and reads, with the type of their payloads. */
import { Topic } from "@eventbus/messaging"
import { DocumentProcessingMessage } from "./messages/documentProcessing.ts"
import { EmailNotificationMessage } from "./messages/email.ts"
import { PaymentEventMessage } from "./messages/payment.ts"
import { TOPIC_DOCUMENTS, TOPIC_EMAILS, TOPIC_PAYMENTS } from "./topicNames.ts"

export const emails = Topic.json(TOPIC_EMAILS, EmailNotificationMessage)
export const documents = Topic.json(TOPIC_DOCUMENTS, DocumentProcessingMessage)
export const payments = Topic.json(TOPIC_PAYMENTS, PaymentEventMessage)
