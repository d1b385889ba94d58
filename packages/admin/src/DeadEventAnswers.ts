/**
 * The answers of the admin API about the dead events of an outbox, plans over them and receipts. Times are ISO-8601 texts in UTC.
 *
 * The parts that may quote an event (the ids of its aggregate and its tenant, headers, payload, and the texts of errors) are there only for callers with the permission `view-payload`.
 */
import * as Schema from "effect/Schema"
import { Permission } from "./Authorizer.ts"
import { Payload } from "./DeadLetterAnswers.ts"

const optional = Schema.optionalKey

/** Dead events of one type that died for the same reason. */
export const Group = Schema.Struct({
  /** The name of the group. */
  fingerprint: Schema.String,
  /** The type of its events. */
  eventType: Schema.String,
  /** The class of the error. Absent when the text of the error does not begin with one. */
  errorClass: optional(Schema.String),
  /** The message of one of its errors, with `#` for numbers and ids. Only with `view-payload`. */
  message: optional(Schema.String),
  count: Schema.Int,
  /** When the first of its events died. */
  first: Schema.String,
  /** When the last of its events died. */
  last: Schema.String,
  /** The ids of its oldest events, at most five. */
  samples: Schema.Array(Schema.String)
})
export type Group = typeof Group.Type

/** The groups of an outbox. */
export const Groups = Schema.Struct({
  /** At most 1000, that with most events first. */
  groups: Schema.Array(Group),
  /** Dead events of all further groups. */
  other: Schema.Int
})
export type Groups = typeof Groups.Type

/** A dead event in a list. */
export const Summary = Schema.Struct({
  eventId: Schema.String,
  eventType: Schema.String,
  /** The fingerprint of its group. */
  group: Schema.String,
  /** `__GLOBAL__` for an event without an aggregate. */
  aggregateType: Schema.String,
  /** Only with `view-payload`. */
  aggregateId: optional(Schema.String),
  /** Only with `view-payload`. */
  tenantId: optional(Schema.String),
  /** Failed deliveries before the one after which it was given up. */
  attempts: Schema.Int,
  /** Absent when the text of the error does not begin with a class. */
  errorClass: optional(Schema.String),
  /** The error of its last delivery. Only with `view-payload`. */
  lastError: optional(Schema.String),
  /** When it was written. */
  createdAt: Schema.String,
  diedAt: Schema.String
})
export type Summary = typeof Summary.Type

/** A page of dead events, the oldest first. */
export const Page = Schema.Struct({
  events: Schema.Array(Summary),
  /** The parameter `next` of the page that follows. Absent on the last one. */
  next: optional(Schema.String)
})
export type Page = typeof Page.Type

/** One dead event. */
export const Event = Schema.Struct({
  ...Summary.fields,
  /** When it happened. */
  occurredAt: optional(Schema.String),
  /** The media type of its payload. */
  contentType: Schema.String,
  /** Whether its row can be decoded. */
  decodable: Schema.Boolean,
  /** Why its row cannot be decoded. Only with `view-payload`. */
  unreadable: optional(Schema.String),
  /** The id of the aggregate is its key, and the payload of the event its value. Only with `view-payload`. */
  payload: optional(Payload)
})
export type Event = typeof Event.Type

/** One event was replayed, or deleted for good. */
export const Done = Schema.Struct({ eventId: Schema.String, action: Schema.Literals(["replay", "discard"]) })
export type Done = typeof Done.Type

/** The selection of a plan. */
export const Selection = Schema.Struct({
  groups: optional(Schema.Array(Schema.String)),
  eventType: optional(Schema.String),
  aggregateType: optional(Schema.String),
  /** Only with `view-payload`. */
  aggregateId: optional(Schema.String),
  eventIds: optional(Schema.Array(Schema.String)),
  all: optional(Schema.Literal(true))
})
export type Selection = typeof Selection.Type

const ofPlan = {
  /** Names the plan, and its receipt. */
  id: Schema.String,
  action: Schema.Literals(["replay", "discard"]),
  reason: Schema.String,
  /** The one who asked for it. */
  by: Schema.String,
  /** How many events it takes. */
  count: Schema.Int
}

/** A plan, and its preview. */
export const Plan = Schema.Struct({
  ...ofPlan,
  select: Selection,
  /** Most events a second. */
  rate: Schema.Int,
  /** How many events come first and alone. */
  canary: Schema.Int,
  canaryWaitMillis: Schema.Int,
  /** The share of events that failed again above which the work stops itself, in percent. */
  stopAbove: Schema.Number,
  /** How many events the selection has beyond these. They need another plan. */
  further: Schema.Int,
  /** The ids of the first events, at most 20. */
  sample: Schema.Array(Schema.String),
  created: Schema.String
})
export type Plan = typeof Plan.Type

/** The work on a plan, and the fate of its events by now, whoever dealt with them. */
export const Receipt = Schema.Struct({
  ...ofPlan,
  /** `planned`: nobody has applied it here. `stopped`: it stopped itself. `failed`: the database failed on the way. */
  state: Schema.Literals(["planned", "running", "done", "stopped", "cancelled", "failed"]),
  /** Why it is in this state. */
  stateReason: optional(Schema.String),
  started: optional(Schema.String),
  ended: optional(Schema.String),
  /** Events that this work has replayed or discarded. There when it is done or has stopped itself. */
  dealtWith: optional(Schema.Int),
  delivered: Schema.Int,
  /** No longer in the table: discarded; delivered, where the outbox deletes delivered events; or purged. */
  gone: Schema.Int,
  /** Replayed, and dead again. */
  deadAgain: Schema.Int,
  /** Replayed, and not delivered yet. */
  waiting: Schema.Int,
  /** Of those that wait: the events that failed again at least once and are retried. */
  retrying: Schema.Int,
  /** Dead as the plan found them. */
  untouched: Schema.Int,
  /** Whether the work is over and no event waits. */
  closed: Schema.Boolean
})
export type Receipt = typeof Receipt.Type

/** The permissions of a caller on the outbox. */
export const Permissions = Schema.Struct({
  /** The name of the caller, as the authorizer gives it. */
  caller: Schema.String,
  permissions: Schema.Array(Permission)
})
export type Permissions = typeof Permissions.Type
