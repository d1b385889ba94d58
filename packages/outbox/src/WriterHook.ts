/**
 * What happens around a write: `beforeWrite` (change or suppress), insert, `afterWrite`, then commit or rollback, then
 * `afterCommit` or `afterRollback`. Only `beforeWrite` may fail the write; failures of the others are logged.
 */
import { Effect, Schema } from "effect"
import type { EventEnvelope } from "./EventEnvelope.ts"

/** A `beforeWrite` that refuses the write. Nothing is inserted. */
export class WriteRefused extends Schema.TaggedError<WriteRefused>()("WriteRefused", {
  reason: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  readonly retryable = false
  override get message(): string {
    return `The write was refused by a hook: ${this.reason}`
  }
}

type Events = ReadonlyArray<EventEnvelope>

export interface WriterHook {
  /** The events to write instead; null or an empty list suppresses the write. */
  readonly beforeWrite?: (events: Events) => Effect.Effect<Events | null, WriteRefused>
  readonly afterWrite?: (events: Events) => Effect.Effect<void, unknown>
  readonly afterCommit?: (events: Events) => Effect.Effect<void, unknown>
  readonly afterRollback?: (events: Events) => Effect.Effect<void, unknown>
}

/** Nothing happens after commit: the poller or change data capture delivers. */
export const noop: WriterHook = Object.freeze({})

/** The hooks one after the other, in the given order. */
export const combine = (first: WriterHook, second: WriterHook): WriterHook => {
  const both = (name: "afterWrite" | "afterCommit" | "afterRollback"): Pick<WriterHook, typeof name> => {
    const hooks = [first, second].filter((hook) => hook[name] !== undefined)
    return hooks.length === 0
      ? {}
      : { [name]: (events: Events) => Effect.forEach(hooks, (hook) => guarded(hook, name, events), { discard: true }) }
  }
  const before = [first.beforeWrite, second.beforeWrite].filter((f) => f !== undefined)
  return {
    ...(before.length === 0
      ? {}
      : {
          beforeWrite: (events: Events) =>
            Effect.reduce(
              before,
              () => events as Events | null,
              (list, hook) => (list === null || list.length === 0 ? Effect.succeed(list) : hook(list))
            )
        }),
    ...both("afterWrite"),
    ...both("afterCommit"),
    ...both("afterRollback")
  }
}

/** Runs one of the hooks that may not fail the write: whatever goes wrong in it is logged. */
export const guarded = (
  hook: WriterHook,
  name: "afterWrite" | "afterCommit" | "afterRollback",
  events: Events
): Effect.Effect<void> =>
  Effect.suspend(() => hook[name]?.(events) ?? Effect.void).pipe(
    Effect.catchCause((cause) => Effect.logError(`outbox: ${name} hook failed; the write is not affected`, cause))
  )
