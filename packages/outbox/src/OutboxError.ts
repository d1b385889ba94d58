/**
 * Everything that can go wrong in the outbox, as tagged errors with data. Each says whether repeating the same call can help.
 */
import { Schema } from "effect"

/** `write` outside a transaction. Nothing was inserted. */
export class NotInTransaction extends Schema.TaggedError<NotInTransaction>()("NotInTransaction", {
  operation: Schema.String
}) {
  readonly retryable = false
  override get message(): string {
    return `${this.operation} needs an open transaction. Call it inside sql.withTransaction, so that event and data commit together.`
  }
}

/** An envelope that cannot be stored or delivered as it is. */
export class InvalidEnvelope extends Schema.TaggedError<InvalidEnvelope>()("InvalidEnvelope", {
  field: Schema.String,
  detail: Schema.String
}) {
  readonly retryable = false
  override get message(): string {
    return `Event envelope: '${this.field}' ${this.detail}.`
  }
}

/** The payload has more bytes than an outbox row may carry. */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()("PayloadTooLarge", {
  eventType: Schema.String,
  bytes: Schema.Number,
  maxBytes: Schema.Number
}) {
  readonly retryable = false
  override get message(): string {
    return `The payload of '${this.eventType}' has ${this.bytes} bytes; at most ${this.maxBytes} are allowed. Store it elsewhere and send a reference.`
  }
}

/** A table, column or channel name that does not pass the identifier check. */
export class InvalidIdentifier extends Schema.TaggedError<InvalidIdentifier>()("InvalidIdentifier", {
  what: Schema.String,
  name: Schema.String
}) {
  readonly retryable = false
  override get message(): string {
    return `${JSON.stringify(this.name)} is not a legal ${this.what}: use 1 to 40 letters, digits and underscores, not starting with a digit.`
  }
}

/** The database refused or did not answer a statement of the outbox (the seed's `OutboxStoreException`). */
export class OutboxStoreError extends Schema.TaggedError<OutboxStoreError>()("OutboxStoreError", {
  operation: Schema.String,
  retryable: Schema.Boolean,
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

/** No listener is registered for the event. It goes to DEAD at once: retrying cannot help. */
export class UnroutableEvent extends Schema.TaggedError<UnroutableEvent>()("UnroutableEvent", {
  aggregateType: Schema.String,
  eventType: Schema.String
}) {
  readonly retryable = false
  override get message(): string {
    return `No listener is registered for '${this.aggregateType}:${this.eventType}'.`
  }
}

/** A second listener for a key that has one already. */
export class DuplicateListener extends Schema.TaggedError<DuplicateListener>()("DuplicateListener", {
  key: Schema.String
}) {
  readonly retryable = false
  override get message(): string {
    return `A listener for '${this.key}' is registered already. One key has one listener; use an interceptor for cross-cutting work.`
  }
}

/** The call is not allowed in the present state, for example `start` after `close`. */
export class InvalidState extends Schema.TaggedError<InvalidState>()("InvalidState", {
  component: Schema.String,
  detail: Schema.String
}) {
  readonly retryable = false
  override get message(): string {
    return `${this.component}: ${this.detail}.`
  }
}

/** Settings that are missing or out of range, all of them at once. */
export class InvalidOutboxConfig extends Schema.TaggedError<InvalidOutboxConfig>()("InvalidOutboxConfig", {
  component: Schema.String,
  issues: Schema.Array(Schema.Struct({ path: Schema.String, found: Schema.String, allowed: Schema.String }))
}) {
  readonly retryable = false
  override get message(): string {
    const lines = this.issues.map((i) => `  ${i.path}: found ${i.found}, allowed ${i.allowed}`)
    return `${this.component} is configured wrongly:\n${lines.join("\n")}`
  }
}

/** The table is missing, or lacks what this version needs. */
export class SchemaMismatch extends Schema.TaggedError<SchemaMismatch>()("SchemaMismatch", {
  table: Schema.String,
  missing: Schema.Array(Schema.String)
}) {
  readonly retryable = false
  override get message(): string {
    return `Table '${this.table}' lacks [${this.missing.join(", ")}]. Run the outbox migrations.`
  }
}

/** A listener fails with this to say that no retry can help: the event goes to DEAD at once. */
export class PoisonEvent extends Schema.TaggedError<PoisonEvent>()("PoisonEvent", {
  reason: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  readonly retryable = false
  override get message(): string {
    return `The event can never be delivered: ${this.reason}`
  }
}

/**
 * A listener fails with this when what it delivers to is down: the event is tried again later and no attempt is counted, so that an
 * outage of any length kills nothing.
 */
export class DownstreamUnavailable extends Schema.TaggedError<DownstreamUnavailable>()("DownstreamUnavailable", {
  cause: Schema.Defect()
}) {
  readonly retryable = true
  override get message(): string {
    return `The destination is not available: ${describe(this.cause)}`
  }
}
