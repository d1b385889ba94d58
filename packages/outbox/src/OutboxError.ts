/** All errors of the outbox, as tagged errors with data. `retryable` says whether repeating the same call can help. */
import * as Schema from "effect/Schema"

/** A write or a registration outside a transaction. Nothing was inserted. Call it inside `sql.withTransaction` (outbox seed §3). */
export class NotInTransaction extends Schema.TaggedError<NotInTransaction>()("NotInTransaction", {
  /** The call that needs a transaction, such as `currentConnection`. */
  operation: Schema.String,
  /** The thing that was given instead of a transaction of another client, and the one to pass, in words. Absent for a transaction of Effect. */
  detail: Schema.optionalKey(Schema.String)
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    const { operation, detail = "call it inside sql.withTransaction" } = this
    return `${operation} needs an open transaction, so that event and data commit together: ${detail}.`
  }
}

/**
 * A rollback hook in a transaction that cannot run it: one that plain `sql.withTransaction` opened. Nothing was inserted. Open it with
 * `TxContext.withTransaction`.
 */
export class RollbackHookUnsupported extends Schema.TaggedError<RollbackHookUnsupported>()("RollbackHookUnsupported", {
  /** The call that needs the hook, such as `afterRollback`. */
  operation: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `${this.operation} needs a transaction that tells of its rollback, and sql.withTransaction does not. Open the transaction with TxContext.withTransaction, or leave the hook away.`
  }
}

/** An event that cannot be stored or delivered as it is. */
export class InvalidEnvelope extends Schema.TaggedError<InvalidEnvelope>()("InvalidEnvelope", {
  /** The field of the event, such as `eventId` or `headers`. */
  field: Schema.String,
  /** The problem, as the rest of a sentence that begins with the field. */
  detail: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `Event envelope: '${this.field}' ${this.detail}.`
  }
}

/** The payload has more bytes than an outbox row may carry (outbox seed §5). Store it elsewhere and send a reference. */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()("PayloadTooLarge", {
  /** The kind of the event. */
  eventType: Schema.String,
  /** The payload's size in bytes. */
  bytes: Schema.Number,
  /** The limit in bytes, inclusive. */
  maxBytes: Schema.Number
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `The payload of '${this.eventType}' has ${this.bytes} bytes; at most ${this.maxBytes} are allowed. Store it elsewhere and send a reference.`
  }
}

/** A name of the database that does not pass the identifier check (ruling 48). */
export class InvalidIdentifier extends Schema.TaggedError<InvalidIdentifier>()("InvalidIdentifier", {
  /** The kind of name, such as `table name`. */
  what: Schema.String,
  /** The name as given. */
  name: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `${JSON.stringify(this.name)} is not a legal ${this.what}: use 1 to 40 letters, digits and underscores, not starting with a digit, and no reserved word of SQL.`
  }
}

/** The database refused a statement of the outbox, or did not answer it (`OutboxStoreException` in outbox seed §2). */
export class OutboxStoreError extends Schema.TaggedError<OutboxStoreError>()("OutboxStoreError", {
  /** The purpose of the statement, such as `insert` or `mark done`. */
  operation: Schema.String,
  /** Whether repeating the same call can help, as the database's driver sees it. */
  retryable: Schema.Boolean,
  /** The driver's error. */
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `Outbox store: ${this.operation} failed: ${describe(this.cause)}`
  }
}

const describe = (cause: unknown): string => {
  if (!(cause instanceof Error)) return typeof cause === "string" ? cause : "unknown cause"
  const causes: Array<string> = []
  for (let e: unknown = cause; e instanceof Error && causes.length < 5; e = e.cause) {
    if (e.message !== "" && !causes.includes(e.message)) causes.push(e.message)
  }
  return causes.join(": ")
}

/** No listener is registered for the event. The event is DEAD at once (outbox seed §11). */
export class UnroutableEvent extends Schema.TaggedError<UnroutableEvent>()("UnroutableEvent", {
  /** The event's aggregate type. */
  aggregateType: Schema.String,
  /** The event's type. */
  eventType: Schema.String
}) {
  /** Retrying the delivery cannot help. */
  readonly retryable = false
  override get message(): string {
    return `No listener is registered for '${this.aggregateType}:${this.eventType}'.`
  }
}

/** A second listener for a key that has one already (outbox seed §11). */
export class DuplicateListener extends Schema.TaggedError<DuplicateListener>()("DuplicateListener", {
  /** The key, as `aggregateType:eventType`. */
  key: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `A listener for '${this.key}' is registered already. One key has one listener; use an interceptor for cross-cutting work.`
  }
}

/** The call is not allowed in the present state, for example `start` after `close`. */
export class InvalidState extends Schema.TaggedError<InvalidState>()("InvalidState", {
  /** The part of the outbox, such as `OutboxPoller`. */
  component: Schema.String,
  /** The call that is not allowed, in words. */
  detail: Schema.String
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `${this.component}: ${this.detail}.`
  }
}

/** Settings are missing or out of range. The error lists all of them at once (ruling 38). */
export class InvalidOutboxConfig extends Schema.TaggedError<InvalidOutboxConfig>()("InvalidOutboxConfig", {
  /** The part of the outbox, such as `OutboxDispatcher`. */
  component: Schema.String,
  /** Each wrong setting: its path, the value found, and the values allowed. */
  issues: Schema.Array(
    Schema.Struct({
      /** The name of the setting, such as `claimLocking.lockTimeout`. */
      path: Schema.String,
      /** The value found, as text. */
      found: Schema.String,
      /** The values allowed, in words. */
      allowed: Schema.String
    })
  )
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    const lines = this.issues.map((i) => `  ${i.path}: found ${i.found}, allowed ${i.allowed}`)
    return `${this.component} has invalid settings:\n${lines.join("\n")}`
  }
}

/** The event table is missing, or lacks a column that this version needs. Run `OutboxSchema.migrate`. */
export class SchemaMismatch extends Schema.TaggedError<SchemaMismatch>()("SchemaMismatch", {
  /** The event table, as configured. */
  table: Schema.String,
  /** The columns that are missing, or `the table itself`. */
  missing: Schema.Array(Schema.String)
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `Table '${this.table}' lacks [${this.missing.join(", ")}]. Run the outbox migrations.`
  }
}

/** A listener fails with this error when no retry can help. The event is DEAD at once. */
export class PoisonEvent extends Schema.TaggedError<PoisonEvent>()("PoisonEvent", {
  /** Why the event can never be delivered, in words. */
  reason: Schema.String,
  /** The error behind it, if there is one. */
  cause: Schema.optionalKey(Schema.Defect())
}) {
  /** Retrying the delivery cannot help. */
  readonly retryable = false
  override get message(): string {
    return `The event can never be delivered: ${this.reason}`
  }
}

/**
 * A listener fails with this error when its destination is down. The event is delivered again later and no attempt is counted, so
 * that an outage of any length kills no event. The other events of the same listener wait as well, and no worker does: one event is tried
 * every 1 to 10 seconds. Events of other listeners are not affected (ruling 87).
 */
export class DownstreamUnavailable extends Schema.TaggedError<DownstreamUnavailable>()("DownstreamUnavailable", {
  /** The destination's error. */
  cause: Schema.Defect(),
  /** The name of the destination in log and health. Default: the listener's key. */
  destination: Schema.optionalKey(Schema.String),
  /** `listener`: all events of the listener wait. `event`: only this one, when others have another destination. Default `listener`. */
  holds: Schema.optionalKey(Schema.Literals(["listener", "event"]))
}) {
  /** Retrying the delivery later can help. */
  readonly retryable = true
  override get message(): string {
    return `The destination is not available: ${describe(this.cause)}`
  }
}

/** Events of the plan are no longer dead by the death that the plan froze: replayed, discarded, purged, or dead again. Nothing was done. */
export class DeadEventPlanStale extends Schema.TaggedError<DeadEventPlanStale>()("DeadEventPlanStale", {
  /** The id of the plan. */
  id: Schema.String,
  /** The events of the plan. */
  count: Schema.Int,
  /** How many of them have changed since the plan was made. */
  changed: Schema.Int
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `Nothing was done: ${this.changed} of the ${this.count} events of plan ${this.id} have changed since it was made. Make a new plan.`
  }
}
