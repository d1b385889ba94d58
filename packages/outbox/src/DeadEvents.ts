/**
 * Dead events as an operator deals with them: by the reason of their failure, one by one, and by plans. `DeadEventOperator` has the operations.
 *
 * A plan names each of its events together with the death that it died. So nobody stores it: it is a value, and its JSON may lie in a file between preview, work and receipt.
 */
import type * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import type { DeadRow, OutboxEvent } from "./OutboxStore.ts"

/** A dead event without its headers and its payload. */
export interface DeadEvent extends DeadRow {
  /** The fingerprint of the group that it belongs to. */
  readonly group: string
}

/** A dead event in full. */
export interface DeadEventDetail extends DeadEvent, Pick<OutboxEvent, "envelope" | "unreadable"> {}

/** Dead events of one type that died for the same reason. */
export interface DeadEventGroup {
  /** Its name: `v1-…`. It depends on event type, error class, and message without numbers and ids. */
  readonly fingerprint: string
  /** The type of its events. */
  readonly eventType: string
  /** The class of the error; empty when the text of the error names none. */
  readonly errorClass: string
  /** The message of one of the errors with `#` for numbers and ids, at most 200 characters. The rest of it may quote the data. */
  readonly message: string
  /** Its events. */
  readonly count: number
  /** When the first of its events died, in microseconds since the epoch, by the database's clock. */
  readonly firstMicros: number
  /** When the last of its events died. */
  readonly lastMicros: number
  /** The ids of its oldest events, at most five. */
  readonly samples: ReadonlyArray<string>
}

/** The groups of an outbox. */
export interface GroupReport {
  /** At most 1000 groups, the one with most events first. */
  readonly groups: ReadonlyArray<DeadEventGroup>
  /** Dead events of further groups. */
  readonly other: number
}

/** Which dead events a page shows. An absent field means all. */
export interface ListQuery {
  /** Only events of this group. */
  readonly group?: string
  /** Only events of this type. */
  readonly eventType?: string
  /** Only events about this type of aggregate. */
  readonly aggregateType?: string
  /** Only events about the aggregate with this id. */
  readonly aggregateId?: string
  /** The cursor `next` of the page before. Default: the oldest events. */
  readonly after?: string
  /** Most events of the page, 1 to 500. Default 50. */
  readonly limit?: number
}

/** A page of dead events, in insertion order. */
export interface DeadEventPage {
  /** The events. */
  readonly events: ReadonlyArray<DeadEvent>
  /** The cursor of the page that follows. Undefined on the last one. */
  readonly next: string | undefined
}

const texts = Schema.optionalKey(Schema.Array(Schema.String))
const text = Schema.optionalKey(Schema.String)

/** Which dead events a plan takes: those that meet every field that is there. One field at least. */
export const Selection = Schema.Struct({
  /** Of one of these groups, by fingerprint. */
  groups: texts,
  /** Of this type. */
  eventType: text,
  /** About this type of aggregate. */
  aggregateType: text,
  /** About the aggregate with this id. */
  aggregateId: text,
  /** With one of these ids: 1 to 1000. */
  eventIds: texts,
  /** True takes every dead event. It stands alone. */
  all: Schema.optionalKey(Schema.Literal(true))
})
/** Which dead events a plan takes. */
export type Selection = typeof Selection.Type

/** A request: which dead events, for what, and how carefully. */
export interface PlanRequest {
  /** `replay`: they are delivered again. `discard`: their rows are deleted, for good. */
  readonly action: "replay" | "discard"
  /** Which dead events. */
  readonly select: Selection
  /** Why. Not empty, at most 1000 characters. The plan and the log have it. */
  readonly reason: string
  /** Most events a second, 1 to 100 000. For `replay` only. Default 50. */
  readonly rate?: number
  /** How many events come first and alone: the others wait for their fate. 0 (none) to 1 000 000. For `replay` only. Default 20. */
  readonly canary?: number
  /** How long the others wait for the fate of the canary. 0 to 2^31 - 1 ms. For `replay` only. Default 60 seconds. */
  readonly canaryWait?: Duration.Input
  /**
   * The work stops itself when more than this share of the events with an outcome failed again, in percent: 0 to 100, where 100 never stops. It is judged after the canary, and from 20
   * outcomes on. For `replay` only. Default 5.
   */
  readonly stopAbove?: number
}

/** A plan, its preview, and every event that it takes. */
export const Plan = Schema.Struct({
  /** The version of this form. */
  version: Schema.Literal(1),
  /** A hash over everything else in the plan: a plan that somebody has changed is refused. */
  id: Schema.String,
  /** As in the request. */
  action: Schema.Literals(["replay", "discard"]),
  /** The event table. */
  table: Schema.String,
  /** As in the request. */
  select: Selection,
  /** As in the request. */
  reason: Schema.String,
  /** Most events a second. */
  rate: Schema.Int,
  /** How many events come first and alone. */
  canary: Schema.Int,
  /** The longest wait for the fate of the canary, in milliseconds. */
  canaryWaitMillis: Schema.Int,
  /** The share of events that failed again above which the work stops itself, in percent. */
  stopAbove: Schema.Finite,
  /** How many events it takes: at most 100 000, the oldest. */
  count: Schema.Int,
  /** How many events the selection has beyond these. They need another plan. */
  further: Schema.Int,
  /** Each event in insertion order, with its death: id, and time of death in microseconds since the epoch. No event that dies later is in the plan. */
  events: Schema.Array(Schema.Tuple([Schema.String, Schema.Int]))
})
/** A plan, its preview, and every event that it takes. */
export type Plan = typeof Plan.Type

/** The fate of the events of a plan by now, whoever dealt with them. */
export interface Receipt {
  /** The id of the plan. */
  readonly id: string
  /** The action of the plan. */
  readonly action: Plan["action"]
  /** The events of the plan. */
  readonly count: number
  /** DONE. */
  readonly delivered: number
  /** No longer in the table: discarded; delivered, where the outbox deletes delivered events; or purged. */
  readonly gone: number
  /** Replayed, and dead again. */
  readonly deadAgain: number
  /** Replayed, and not delivered yet. */
  readonly waiting: number
  /** Of those that wait: the events that failed again at least once and are retried. */
  readonly retrying: number
  /** Dead as the plan found them. */
  readonly untouched: number
  /** Whether the plan was applied and no event waits: the other figures stay, unless somebody replays one of the events. False while every event is untouched. */
  readonly closed: boolean
}

/** Options of `apply`. */
export interface ApplyOptions {
  /** Succeeds once the plan is found to be as it was made, just before its first event is changed. */
  readonly begun?: Deferred.Deferred<void>
}

/** The end of the work on a plan. */
export interface ApplyReport extends Receipt {
  /** `stopped`: it stopped itself, and the rest of its events is untouched. */
  readonly state: "done" | "stopped"
  /** Why it stopped. Undefined when it is done. */
  readonly stateReason: string | undefined
  /** Events that this call replayed or discarded. Another operator may have dealt with others meanwhile. */
  readonly dealtWith: number
}
