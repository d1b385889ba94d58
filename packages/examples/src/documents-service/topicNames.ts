/** The 28 topics of the service. */
import type { Topic } from "@eventbus/messaging"

export const TOPIC_EMAILS = "unraveldocs-emails"
export const TOPIC_DOCUMENTS = "unraveldocs-documents"
export const TOPIC_PAYMENTS = "unraveldocs-payments"
export const TOPIC_USERS = "unraveldocs-users"
export const TOPIC_NOTIFICATIONS = "unraveldocs-notifications"
export const TOPIC_RECEIPTS = "unraveldocs-receipts"
export const TOPIC_OCR = "unraveldocs-ocr"
export const TOPIC_TEAM_EVENTS = "unraveldocs-team-events"
export const TOPIC_ADMIN_EVENTS = "unraveldocs-admin-events"
export const TOPIC_ELASTICSEARCH = "unraveldocs-elasticsearch"

export const TOPIC_EMAILS_RETRY = `${TOPIC_EMAILS}-retry`
export const TOPIC_DOCUMENTS_RETRY = `${TOPIC_DOCUMENTS}-retry`
export const TOPIC_PAYMENTS_RETRY = `${TOPIC_PAYMENTS}-retry`
export const TOPIC_USERS_RETRY = `${TOPIC_USERS}-retry`
export const TOPIC_RECEIPTS_RETRY = `${TOPIC_RECEIPTS}-retry`
export const TOPIC_OCR_RETRY = `${TOPIC_OCR}-retry`
export const TOPIC_TEAM_EVENTS_RETRY = `${TOPIC_TEAM_EVENTS}-retry`
export const TOPIC_ADMIN_EVENTS_RETRY = `${TOPIC_ADMIN_EVENTS}-retry`
export const TOPIC_ELASTICSEARCH_RETRY = `${TOPIC_ELASTICSEARCH}-retry`

export const TOPIC_EMAILS_DLQ = `${TOPIC_EMAILS}-dlq`
export const TOPIC_DOCUMENTS_DLQ = `${TOPIC_DOCUMENTS}-dlq`
export const TOPIC_PAYMENTS_DLQ = `${TOPIC_PAYMENTS}-dlq`
export const TOPIC_USERS_DLQ = `${TOPIC_USERS}-dlq`
export const TOPIC_RECEIPTS_DLQ = `${TOPIC_RECEIPTS}-dlq`
export const TOPIC_OCR_DLQ = `${TOPIC_OCR}-dlq`
export const TOPIC_TEAM_EVENTS_DLQ = `${TOPIC_TEAM_EVENTS}-dlq`
export const TOPIC_ADMIN_EVENTS_DLQ = `${TOPIC_ADMIN_EVENTS}-dlq`
export const TOPIC_ELASTICSEARCH_DLQ = `${TOPIC_ELASTICSEARCH}-dlq`

const days = (count: number) => count * 24 * 60 * 60 * 1_000

const primary: ReadonlyArray<Topic.TopicDeclaration> = [
  { name: TOPIC_EMAILS, partitions: 3, retentionMillis: days(7) },
  { name: TOPIC_DOCUMENTS, partitions: 6, retentionMillis: days(7) },
  { name: TOPIC_PAYMENTS, partitions: 3, retentionMillis: days(30) },
  { name: TOPIC_USERS, partitions: 3, retentionMillis: days(7) },
  { name: TOPIC_NOTIFICATIONS, partitions: 3, retentionMillis: days(3) },
  { name: TOPIC_RECEIPTS, partitions: 3, retentionMillis: days(30) },
  { name: TOPIC_OCR, partitions: 3, retentionMillis: days(7) },
  { name: TOPIC_TEAM_EVENTS, partitions: 3, retentionMillis: days(7) },
  { name: TOPIC_ADMIN_EVENTS, partitions: 3, retentionMillis: days(7) },
  { name: TOPIC_ELASTICSEARCH, partitions: 6, retentionMillis: days(7) }
]

const retry = [
  ...[TOPIC_EMAILS_RETRY, TOPIC_DOCUMENTS_RETRY, TOPIC_PAYMENTS_RETRY, TOPIC_USERS_RETRY, TOPIC_RECEIPTS_RETRY],
  ...[TOPIC_OCR_RETRY, TOPIC_TEAM_EVENTS_RETRY, TOPIC_ADMIN_EVENTS_RETRY, TOPIC_ELASTICSEARCH_RETRY]
]

const dlq = [
  ...[TOPIC_EMAILS_DLQ, TOPIC_DOCUMENTS_DLQ, TOPIC_PAYMENTS_DLQ, TOPIC_USERS_DLQ, TOPIC_RECEIPTS_DLQ],
  ...[TOPIC_OCR_DLQ, TOPIC_TEAM_EVENTS_DLQ, TOPIC_ADMIN_EVENTS_DLQ, TOPIC_ELASTICSEARCH_DLQ]
]

/** Each with its partitions and its retention: 10 primary ones, 9 retry topics, 9 dead letter topics. */
export const declarations: ReadonlyArray<Topic.TopicDeclaration> = [
  ...primary,
  ...retry.map((name) => ({ name, partitions: 1, retentionMillis: days(1) })),
  ...dlq.map((name) => ({ name, partitions: 1, retentionMillis: days(30) }))
]
