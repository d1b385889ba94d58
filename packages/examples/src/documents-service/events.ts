/** The events of the service, each with its payload, and the topics that have them. */
import { EventTopic, EventType } from "@eventbus/messaging"
import { Schema } from "effect"
import * as Types from "./eventTypes.ts"
import { TOPIC_ADMIN_EVENTS, TOPIC_ELASTICSEARCH, TOPIC_OCR, TOPIC_TEAM_EVENTS, TOPIC_USERS } from "./topicNames.ts"

const person = { email: Schema.NonEmptyString, firstName: Schema.NonEmptyString }
const link = { token: Schema.NonEmptyString, expiresAt: Schema.DateTimeUtcFromString }

export const userRegistered = EventType.make(
  Types.USER_REGISTERED,
  Schema.Struct({ ...person, lastName: Schema.String, ...link })
)
export const userDeletionScheduled = EventType.make(
  Types.USER_DELETION_SCHEDULED,
  Schema.Struct({ ...person, deletionDate: Schema.DateTimeUtcFromString })
)
export const userDeleted = EventType.make(Types.USER_DELETED, Schema.Struct(person))
export const passwordChanged = EventType.make(Types.PASSWORD_CHANGED, Schema.Struct(person))
export const passwordResetRequested = EventType.make(
  Types.PASSWORD_RESET_REQUESTED,
  Schema.Struct({ ...person, ...link })
)
export const passwordResetSuccessful = EventType.make(Types.PASSWORD_RESET_SUCCESSFUL, Schema.Struct(person))
export const welcome = EventType.make(Types.WELCOME_EVENT, Schema.Struct(person))

export const userEvents = EventTopic.make(TOPIC_USERS, [
  userRegistered,
  userDeletionScheduled,
  userDeleted,
  passwordChanged,
  passwordResetRequested,
  passwordResetSuccessful,
  welcome
])

export const adminCreated = EventType.make(Types.ADMIN_CREATED, Schema.Struct({ ...person, role: Schema.String }))
export const adminEvents = EventTopic.make(TOPIC_ADMIN_EVENTS, [adminCreated])

export const ocrRequested = EventType.make(
  Types.OCR_REQUESTED,
  Schema.Struct({ documentId: Schema.NonEmptyString, userId: Schema.NonEmptyString })
)
export const ocrEvents = EventTopic.make(TOPIC_OCR, [ocrRequested])

const team = { teamId: Schema.NonEmptyString, email: Schema.NonEmptyString }
const charge = { amount: Schema.BigDecimalFromString, currency: Schema.NonEmptyString }

export const teamTrialExpiring = EventType.make(
  Types.TEAM_TRIAL_EXPIRING,
  Schema.Struct({ ...team, expiresAt: Schema.DateTimeUtcFromString })
)
export const teamSubscriptionCharged = EventType.make(
  Types.TEAM_SUBSCRIPTION_CHARGED,
  Schema.Struct({ ...team, ...charge })
)
export const teamSubscriptionFailed = EventType.make(
  Types.TEAM_SUBSCRIPTION_FAILED,
  Schema.Struct({ ...team, reason: Schema.String })
)
export const teamCreated = EventType.make(Types.TEAM_CREATED, Schema.Struct({ ...team, name: Schema.NonEmptyString }))

export const teamEvents = EventTopic.make(TOPIC_TEAM_EVENTS, [
  teamTrialExpiring,
  teamSubscriptionCharged,
  teamSubscriptionFailed,
  teamCreated
])

const indexed = Schema.Struct({ id: Schema.NonEmptyString, operation: Schema.Literals(["INDEX", "DELETE"]) })

export const indexEvents = EventTopic.make(TOPIC_ELASTICSEARCH, [
  EventType.make(Types.ES_DOCUMENT_INDEX, indexed),
  EventType.make(Types.ES_USER_INDEX, indexed),
  EventType.make(Types.ES_PAYMENT_INDEX, indexed),
  EventType.make(Types.ES_SUBSCRIPTION_INDEX, indexed)
])
