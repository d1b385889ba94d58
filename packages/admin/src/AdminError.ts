/**
 * The errors of the admin API that are not already errors of the connector. Over HTTP every error is `{ _tag, message, ... }` with its fields.
 */
import * as Schema from "effect/Schema"

/** A parameter that cannot be. */
export const ParameterIssue = Schema.Struct({
  /** The name of the parameter. Empty for the request as a whole. */
  path: Schema.String,
  /** The value that was found, as text. */
  found: Schema.String,
  /** The values that are allowed. */
  allowed: Schema.String
})
export type ParameterIssue = typeof ParameterIssue.Type

/** Parameters of a request that cannot be, all at once. Nothing was done. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  /** Every parameter that is refused. */
  issues: Schema.Array(ParameterIssue)
}) {
  override get message(): string {
    const lines = this.issues.map(({ path, found, allowed }) => `  ${path}: found ${found}, allowed is ${allowed}`)
    return ["The request cannot be used:", ...lines].join("\n")
  }
}

/** The body of a request is larger than 1 MiB, or is not JSON by its content type. Nothing was done. */
export class UnreadableBody extends Schema.TaggedError<UnreadableBody>()("UnreadableBody", {
  /** Why it is refused. */
  reason: Schema.String
}) {
  override get message(): string {
    return `The body of the request is refused: ${this.reason}.`
  }
}

/** The API has no authorizer, so it answers only callers on this machine. */
export class LoopbackOnly extends Schema.TaggedError<LoopbackOnly>()("LoopbackOnly", {}) {
  override get message(): string {
    return "Without an authorizer the admin API answers only callers on this machine, and this caller is not known to be one. Give the API an authorizer."
  }
}

/** The API changes nothing: it has no authorizer, or is set to `readOnly`. */
export class ReadOnly extends Schema.TaggedError<ReadOnly>()("ReadOnly", {
  /** Whether an authorizer would let the request through. */
  authorizer: Schema.Boolean
}) {
  override get message(): string {
    return this.authorizer
      ? "The admin API is set to read-only, so it changes nothing."
      : "Without an authorizer the admin API is read-only. Give the API an authorizer."
  }
}

/** The request would change something without a token, and may come from a page of another site. Nothing was done. */
export class CrossSiteRequest extends Schema.TaggedError<CrossSiteRequest>()("CrossSiteRequest", {}) {
  override get message(): string {
    return "A change without a bearer token needs the header 'x-eventbus-csrf', and is taken only from pages of this site."
  }
}

/** The process runs no bindings: it looks at those of other processes from outside (`EventBusAdmin.layerOutside`). Nothing was done. */
export class NotRunHere extends Schema.TaggedError<NotRunHere>()("NotRunHere", {
  /** The command, such as `start`. */
  operation: Schema.String,
  /** The binding, as `{cluster}:{binding}`. Absent for a registration. */
  binding: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    const what = this.binding === undefined ? "a binding" : `'${this.binding}'`
    return `This console runs no bindings, so it cannot ${this.operation} ${what}: use the fleet, or the process that runs it.`
  }
}

/** The authorizer failed without an answer, so nothing was done. */
export class AuthorizerFailed extends Schema.TaggedError<AuthorizerFailed>()("AuthorizerFailed", {}) {
  override get message(): string {
    return "The authorizer gave no answer. The log of the process says why."
  }
}

/** The program has no audit log. */
export class AuditOff extends Schema.TaggedError<AuditOff>()("AuditOff", {}) {
  override get message(): string {
    return "This program has no audit log. Give EventBusAdmin.layer the layer Audit.layer(), or its file the section eventbus.audit."
  }
}

/** The cluster refused, or did not answer. */
export class ClusterFailed extends Schema.TaggedError<ClusterFailed>()("ClusterFailed", {
  /** The tag of the broker's error, such as `BrokerUnavailable`. */
  error: Schema.String,
  /** The message of the broker's error. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** The dead letter topic has no record at this position. */
export class DeadLetterNotFound extends Schema.TaggedError<DeadLetterNotFound>()("DeadLetterNotFound", {
  /** The binding, as `{cluster}:{binding}`. */
  binding: Schema.String,
  /** The position, such as `3@17`. */
  position: Schema.String
}) {
  override get message(): string {
    return `The dead letter topic of binding '${this.binding}' has no record at ${this.position}.`
  }
}

/** There is no such rehearsal in this process: it was never begun here, or ended more than 15 minutes ago. */
export class RehearsalNotFound extends Schema.TaggedError<RehearsalNotFound>()("RehearsalNotFound", {
  /** The binding, as `{cluster}:{binding}`. */
  binding: Schema.String,
  /** The id that was asked for. */
  id: Schema.String
}) {
  override get message(): string {
    return `Binding '${this.binding}' has no rehearsal '${this.id}' in this process. Results are kept for 15 minutes.`
  }
}

/** The binding is being rehearsed in this process already. Nothing was done. */
export class RehearsalRunning extends Schema.TaggedError<RehearsalRunning>()("RehearsalRunning", {
  /** The binding, as `{cluster}:{binding}`. */
  binding: Schema.String,
  /** The id of the rehearsal that runs. */
  id: Schema.String
}) {
  override get message(): string {
    return `Binding '${this.binding}' is being rehearsed already: '${this.id}' runs. Wait for its end.`
  }
}

/** The program belongs to no fleet, so it can command no other process. Nothing was done. */
export class FleetNotConfigured extends Schema.TaggedError<FleetNotConfigured>()("FleetNotConfigured", {}) {
  override get message(): string {
    return "This program belongs to no fleet. Provide Fleet.layer, or set eventbus.fleet in the configuration file."
  }
}

/** The idempotency key was used for another request of this caller: another route, another binding, other parameters or another body. Nothing was done. */
export class IdempotencyKeyReused extends Schema.TaggedError<IdempotencyKeyReused>()("IdempotencyKeyReused", {}) {
  override get message(): string {
    return "The idempotency key was used for another request in the last 24 hours. Nothing was done. Repeat a request as it was, or give the new one a key of its own."
  }
}

/** A request with this key has begun, and has no answer yet. Nothing more was done. */
export class IdempotentRequestUnfinished extends Schema.TaggedError<IdempotentRequestUnfinished>()(
  "IdempotentRequestUnfinished",
  {
    /** The host of the process that got the first request. */
    host: Schema.String,
    /** The id of that process. */
    pid: Schema.Int,
    /** Since when, ISO-8601. */
    since: Schema.String
  }
) {
  override get message(): string {
    return `Process ${this.pid} on ${this.host} works on the request with this idempotency key since ${this.since}, so nothing more was done. Ask again for its answer. If that process has ended meanwhile, nobody knows whether the work was done: look, and then use another key.`
  }
}

/** The request was done, and its answer is larger than the 256 KiB that are kept. Nothing more was done. */
export class IdempotentAnswerTooLarge extends Schema.TaggedError<IdempotentAnswerTooLarge>()(
  "IdempotentAnswerTooLarge",
  {
    /** The status of the first answer. */
    status: Schema.Int
  }
) {
  override get message(): string {
    return `The request with this idempotency key was answered with status ${this.status}, and the answer was too large to be kept. Nothing more was done.`
  }
}

/** The journal that keeps idempotency keys cannot be written or read. Nothing was done. */
export class IdempotencyUnavailable extends Schema.TaggedError<IdempotencyUnavailable>()("IdempotencyUnavailable", {
  /** The binding, as `{cluster}:{binding}`. */
  binding: Schema.String,
  /** The message of the broker's error. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The journal of binding '${this.binding}' cannot keep the idempotency key: ${this.detail} Nothing was done. Repeat the request, or send it without a key; then a repeat may do it twice.`
  }
}

/** The program has given the admin API no outbox. */
export class OutboxOff extends Schema.TaggedError<OutboxOff>()("OutboxOff", {}) {
  override get message(): string {
    return "This program has no outbox that the admin API could look at. Give EventBusAdmin.layer a layer with OutboxPort, such as Layer.effect(OutboxPort.OutboxPort, DeadEventOperator.make())."
  }
}

/** The database of the outbox refused, or did not answer. The log has its error, which may quote a row. */
export class OutboxFailed extends Schema.TaggedError<OutboxFailed>()("OutboxFailed", {
  /** The purpose of the statement, such as `read dead events`. */
  operation: Schema.String
}) {
  override get message(): string {
    return `The database of the outbox refused to ${this.operation}, or did not answer. The log of the process says why.`
  }
}

/** No dead event has this id: there is none, or somebody has dealt with it. */
export class DeadEventNotFound extends Schema.TaggedError<DeadEventNotFound>()("DeadEventNotFound", {
  /** The id that was asked for. */
  eventId: Schema.String
}) {
  override get message(): string {
    return `No dead event has the id '${this.eventId}'.`
  }
}

/** This process has no such plan over dead events: another process made it, it is older than 24 hours, or 100 newer ones took its place. */
export class DeadEventPlanNotFound extends Schema.TaggedError<DeadEventPlanNotFound>()("DeadEventPlanNotFound", {
  /** The id that was asked for. */
  id: Schema.String
}) {
  override get message(): string {
    return `This process has no plan '${this.id}' over dead events. A plan is kept for 24 hours by the process that made it. Make a new one.`
  }
}

/** The plan was applied already. Nothing was done. */
export class DeadEventPlanApplied extends Schema.TaggedError<DeadEventPlanApplied>()("DeadEventPlanApplied", {
  /** The id of the plan. */
  id: Schema.String
}) {
  override get message(): string {
    return `Nothing was done: plan ${this.id} was applied already. Read its receipt, or make a new plan.`
  }
}

/** Events of the plan are no longer dead by the death that the plan froze. Nothing was done. */
export class DeadEventPlanStale extends Schema.TaggedError<DeadEventPlanStale>()("DeadEventPlanStale", {
  /** The id of the plan. */
  id: Schema.String,
  /** The events of the plan. */
  count: Schema.Int,
  /** How many of them have changed since the plan was made. */
  changed: Schema.Int
}) {
  override get message(): string {
    return `Nothing was done: ${this.changed} of the ${this.count} events of plan ${this.id} have changed since it was made. Make a new plan.`
  }
}

/** Nobody works on the plan, so nothing can be cancelled. */
export class DeadEventPlanNotRunning extends Schema.TaggedError<DeadEventPlanNotRunning>()("DeadEventPlanNotRunning", {
  /** The id of the plan. */
  id: Schema.String,
  /** Its state, such as `done`. */
  state: Schema.String
}) {
  override get message(): string {
    return `Nothing was done: plan ${this.id} is ${this.state}, and nobody works on it.`
  }
}
