/** Errors of a bus itself. All others are those of the core. */
import * as Schema from "effect/Schema"

/** The bus does not run: it was not started, its start failed, or it was stopped. Nothing was done. */
export class EventBusNotRunning extends Schema.TaggedError<EventBusNotRunning>()("EventBusNotRunning", {
  /** The method that was called. */
  operation: Schema.String
}) {
  override get message(): string {
    return `${this.operation}: the event bus does not run. Call 'await bus.start()' first; in NestJS it starts behind onApplicationBootstrap.`
  }
}

/** The bus was stopped while it started. */
export class StartInterrupted extends Schema.TaggedError<StartInterrupted>()("StartInterrupted", {}) {
  override get message(): string {
    return "The event bus was stopped while it started."
  }
}

/** The bus did not become ready in time. It goes on, and may become ready later. */
export class NotReady extends Schema.TaggedError<NotReady>()("NotReady", {
  /** The timeout in milliseconds. */
  timeoutMillis: Schema.Number,
  /** Everything that it waits for, in words. */
  reasons: Schema.Array(Schema.String)
}) {
  /** It may be ready later. */
  readonly retryable = true
  override get message(): string {
    const { timeoutMillis, reasons } = this
    return `The event bus is not ready after ${timeoutMillis} ms: ${reasons.length === 0 ? "it has no consumer" : reasons.join("; ")}`
  }
}
