/** An event of a user. */
import { DateTime, Effect, Schema } from "effect"

export const UserEventType = Schema.Literals([
  "USER_REGISTERED",
  "USER_VERIFIED",
  "USER_LOGIN",
  "USER_LOGOUT",
  "USER_UPDATED",
  "USER_DELETED",
  "PASSWORD_CHANGED",
  "PASSWORD_RESET_REQUESTED",
  "PASSWORD_RESET_COMPLETED",
  "ROLE_CHANGED",
  "SUBSCRIPTION_CHANGED",
  "SUSPICIOUS_ACTIVITY"
])
export type UserEventType = typeof UserEventType.Type

export class UserEventMessage extends Schema.Class<UserEventMessage>("UserEventMessage")({
  eventType: UserEventType,
  userId: Schema.NonEmptyString,
  email: Schema.NonEmptyString,
  /** Details that belong to this event alone. */
  eventData: Schema.Record(Schema.String, Schema.Json),
  /** When it happened. */
  eventTimestamp: Schema.DateTimeUtcFromString,
  /** From where, for events of security. */
  ipAddress: Schema.optionalKey(Schema.String),
  /** With which program, for events of security. */
  userAgent: Schema.optionalKey(Schema.String)
}) {}

type Further = Partial<Pick<UserEventMessage, "ipAddress" | "userAgent">>

const event = (eventType: UserEventType, userId: string, email: string, further: Further = {}) =>
  Effect.map(
    DateTime.now,
    (eventTimestamp) => new UserEventMessage({ eventType, userId, email, eventData: {}, eventTimestamp, ...further })
  )

/** A user has registered. */
export const userRegistered = (userId: string, email: string) => event("USER_REGISTERED", userId, email)

/** A user has verified the address. */
export const userVerified = (userId: string, email: string) => event("USER_VERIFIED", userId, email)

/** A user has logged in, from there and with that. */
export const loginEvent = (userId: string, email: string, ipAddress: string, userAgent: string) =>
  event("USER_LOGIN", userId, email, { ipAddress, userAgent })
