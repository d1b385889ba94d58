/**
 * The outbox of the program, as the admin API needs it: the operator of its dead events. `DeadEventOperator` of `@eventbus/outbox` is one as it is. With it below `EventBusAdmin.layer`,
 * the API and the console deal with dead events.
 *
 * ```ts
 * import { EventBusAdmin, OutboxPort } from "@eventbus/admin"
 * import { DeadEventOperator, type OutboxStore } from "@eventbus/outbox"
 * import { Layer } from "effect"
 *
 * declare const Store: Layer.Layer<OutboxStore.OutboxStore>
 *
 * const Outbox = Layer.effect(OutboxPort.OutboxPort, DeadEventOperator.make()).pipe(Layer.provide(Store))
 *
 * export const Admin = EventBusAdmin.layer().pipe(Layer.provide(Outbox))
 * ```
 */
import * as Context from "effect/Context"
import type * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"

/** One argument that is refused. */
export interface RefusedArgument {
  /** Its path, such as `select.groups`. */
  readonly path: string
  /** The value that was given. */
  readonly found: string
  /** The values that are allowed. */
  readonly allowed: string
}

/** Arguments that are not allowed. Nothing was asked of the database. */
export interface Refused {
  /** `InvalidOutboxConfig`. */
  readonly _tag: "InvalidOutboxConfig"
  /** Every argument that is refused. */
  readonly issues: ReadonlyArray<RefusedArgument>
}

/** The database refuses, or does not answer. */
export interface StoreFailed {
  /** `OutboxStoreError`. */
  readonly _tag: "OutboxStoreError"
  /** The purpose of the statement, such as `read dead events`. */
  readonly operation: string
}

/** Events of a plan are no longer dead by the death that the plan froze. Nothing was done. */
export interface PlanStale {
  /** `DeadEventPlanStale`. */
  readonly _tag: "DeadEventPlanStale"
  /** The id of the plan. */
  readonly id: string
  /** The events of the plan. */
  readonly count: number
  /** How many of them have changed since the plan was made. */
  readonly changed: number
}

/** Every failure of an operator. */
export type Failed = Refused | StoreFailed | PlanStale

/** A dead event without its headers and its payload. Times are microseconds since the epoch, by the database's clock. */
export interface DeadEvent {
  /** The event's unique id. */
  readonly eventId: string
  /** The kind of the event. */
  readonly eventType: string
  /** The kind of the aggregate. */
  readonly aggregateType: string
  /** The aggregate's id; undefined for an event without one. */
  readonly aggregateId: string | undefined
  /** The tenant; undefined for an event without one. */
  readonly tenantId: string | undefined
  /** Failed deliveries before the one after which the event was given up. */
  readonly attempts: number
  /** Why the event was given up. Undefined when nothing noted it. */
  readonly lastError: string | undefined
  /** When it was written. */
  readonly createdAtMicros: number
  /** When it died. */
  readonly diedAtMicros: number
  /** The fingerprint of the group that it belongs to. */
  readonly group: string
}

/** A dead event in full. */
export interface DeadEventDetail extends DeadEvent {
  /** The event as it was written. */
  readonly envelope: {
    /** When the event happened, in epoch milliseconds. */
    readonly occurredAtMillis: number
    /** Text headers. */
    readonly headers: ReadonlyMap<string, string>
    /** The media type of the payload. */
    readonly contentType: string
    /** The payload's bytes. */
    readonly payload: Uint8Array
  }
  /** Why it cannot be decoded. Absent when it can. */
  readonly unreadable?: UnreadableEvent
}

/** An event that cannot be decoded. */
export interface UnreadableEvent {
  /** The decoder's message. */
  readonly reason: string
}

/** Dead events of one type that died for the same reason. Times are microseconds since the epoch. */
export interface DeadEventGroup {
  /** Its name. */
  readonly fingerprint: string
  /** The type of its events. */
  readonly eventType: string
  /** The class of the error; empty when its text names none. */
  readonly errorClass: string
  /** The message of one of the errors with `#` for numbers and ids. */
  readonly message: string
  /** Its events. */
  readonly count: number
  /** When the first of its events died. */
  readonly firstMicros: number
  /** When the last of its events died. */
  readonly lastMicros: number
  /** The ids of its oldest events, a few. */
  readonly samples: ReadonlyArray<string>
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

/** Which dead events a plan takes: those that meet every field that is there. One field at least. */
export interface Selection {
  /** Of one of these groups, by fingerprint. */
  readonly groups?: ReadonlyArray<string>
  /** Of this type. */
  readonly eventType?: string
  /** About this type of aggregate. */
  readonly aggregateType?: string
  /** About the aggregate with this id. */
  readonly aggregateId?: string
  /** With one of these ids. */
  readonly eventIds?: ReadonlyArray<string>
  /** True takes every dead event. It stands alone. */
  readonly all?: true
}

/** A request: which dead events, for what, and how carefully. */
export interface PlanRequest {
  /** `replay`: they are delivered again. `discard`: their rows are deleted, for good. */
  readonly action: "replay" | "discard"
  /** Which dead events. */
  readonly select: Selection
  /** Why. */
  readonly reason: string
  /** Most events a second. For `replay` only. */
  readonly rate?: number
  /** How many events come first and alone. For `replay` only. */
  readonly canary?: number
  /** How long the others wait for the fate of the canary. For `replay` only. */
  readonly canaryWait?: Duration.Input
  /** The share of events that failed again above which the work stops itself, in percent. For `replay` only. */
  readonly stopAbove?: number
}

/** A plan, and every event that it takes with the death that it died. */
export interface Plan {
  /** The version of its form. */
  readonly version: 1
  /** A hash over everything else in it. */
  readonly id: string
  /** As in the request. */
  readonly action: "replay" | "discard"
  /** The event table. */
  readonly table: string
  /** As in the request. */
  readonly select: Selection
  /** As in the request. */
  readonly reason: string
  /** Most events a second. */
  readonly rate: number
  /** How many events come first and alone. */
  readonly canary: number
  /** The longest wait for the fate of the canary, in milliseconds. */
  readonly canaryWaitMillis: number
  /** The share of events that failed again above which the work stops itself, in percent. */
  readonly stopAbove: number
  /** How many events it takes. */
  readonly count: number
  /** How many events the selection has beyond these. */
  readonly further: number
  /** The id of each event, and its time of death in microseconds since the epoch. */
  readonly events: ReadonlyArray<readonly [eventId: string, diedAtMicros: number]>
}

/** The fate of the events of a plan by now, whoever dealt with them. */
export interface Receipt {
  /** The events of the plan. */
  readonly count: number
  /** Delivered. */
  readonly delivered: number
  /** No longer in the table: discarded, deleted after their delivery, or purged. */
  readonly gone: number
  /** Replayed, and dead again. */
  readonly deadAgain: number
  /** Replayed, and not delivered yet. */
  readonly waiting: number
  /** Of those that wait: the events that failed again and are retried. */
  readonly retrying: number
  /** Dead as the plan found them. */
  readonly untouched: number
  /** Whether the plan was applied and no event waits. */
  readonly closed: boolean
}

/** The end of the work on a plan. */
export interface ApplyReport extends Receipt {
  /** `stopped`: it stopped itself, and the rest of its events is untouched. */
  readonly state: "done" | "stopped"
  /** Why it stopped. Undefined when it is done. */
  readonly stateReason: string | undefined
  /** Events that this work replayed or discarded. */
  readonly dealtWith: number
}

/** All dead events of an outbox by the reason of their failure. */
export interface DeadEventGroups {
  /** The largest group first. */
  readonly groups: ReadonlyArray<DeadEventGroup>
  /** How many dead events lie in further groups. */
  readonly other: number
}

/** The operator of the dead events of one outbox. A program without it has no outbox for the admin API. */
export class OutboxPort extends Context.Service<
  OutboxPort,
  {
    /** All dead events by the reason of their failure. */
    readonly groups: Effect.Effect<DeadEventGroups, StoreFailed>
    /** A page of dead events, the oldest first. `next` is undefined on the last one. */
    readonly list: (
      query: ListQuery
    ) => Effect.Effect<
      { readonly events: ReadonlyArray<DeadEvent>; readonly next: string | undefined },
      Refused | StoreFailed
    >
    /** One dead event in full. Undefined when no dead event has the id. */
    readonly show: (eventId: string) => Effect.Effect<DeadEventDetail | undefined, StoreFailed>
    /** Makes a plan, and changes nothing. Refuses every field that no request has. */
    readonly plan: (request: PlanRequest) => Effect.Effect<Plan, Refused | StoreFailed>
    /** Works on a plan until it is done or stops itself. `begun` succeeds just before the first event is changed. */
    readonly apply: (
      plan: Plan,
      options: { readonly begun: Deferred.Deferred<void> }
    ) => Effect.Effect<ApplyReport, Failed>
    /** The fate of the events of a plan by now. */
    readonly receipt: (plan: Plan) => Effect.Effect<Receipt, Refused | StoreFailed>
    /** Replays one dead event at once. False when no dead event has the id. */
    readonly replay: (eventId: string, reason: string) => Effect.Effect<boolean, Refused | StoreFailed>
  }
>()("@eventbus/admin/OutboxPort") {}
