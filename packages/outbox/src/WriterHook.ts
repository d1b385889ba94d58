/**
 * Hooks around a write (outbox seed §7). The order is `beforeWrite`, insert, `afterWrite`, commit or rollback, `afterCommit` or
 * `afterRollback`. Only `beforeWrite` can fail the write; failures of the other hooks are logged.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { EventEnvelope } from "./EventEnvelope.ts"
import { type HookName, noteCombined, runHook } from "./internal/delivery/writerHooks.ts"

/** A `beforeWrite` hook refused the write. Nothing is inserted. Not retryable. */
export class WriteRefused extends Schema.TaggedError<WriteRefused>()("WriteRefused", {
  /** Why the hook refused, in words. */
  reason: Schema.String,
  /** The error behind the refusal, if there is one. */
  cause: Schema.optionalKey(Schema.Defect())
}) {
  /** Repeating the same call cannot help. */
  readonly retryable = false
  override get message(): string {
    return `A hook refused the write: ${this.reason}`
  }
}

type Events = ReadonlyArray<EventEnvelope>

/** Hooks around every write of one writer. Each is optional. */
export interface WriterHook {
  /**
   * Runs before the insert, and returns the events to write instead. Null or an empty list suppresses the write: nothing is inserted,
   * and no other hook runs. Fails the write with `WriteRefused`.
   */
  readonly beforeWrite?: (events: Events) => Effect.Effect<Events | null, WriteRefused>
  /** Runs after the insert, inside the transaction. Its failure is logged. Its time is that of the transaction. */
  readonly afterWrite?: (events: Events) => Effect.Effect<void, unknown>
  /**
   * Runs after the outermost transaction has committed, for at most 30 seconds: the writing fiber waits for it, and cannot be interrupted meanwhile. Its failure is
   * logged, and so is a hook that is cut off.
   */
  readonly afterCommit?: (events: Events) => Effect.Effect<void, unknown>
  /**
   * Runs after the transaction, or the savepoint around the write, has rolled back, for at most 30 seconds. Its failure is logged. With this hook a write inside
   * plain `sql.withTransaction` fails with `RollbackHookUnsupported`; open the transaction with `TxContext.withTransaction`.
   */
  readonly afterRollback?: (events: Events) => Effect.Effect<void, unknown>
}

/** The hook that does nothing: the poller or change data capture delivers. */
export const noop: WriterHook = Object.freeze({})

/** Both hooks, the first before the second. `second.beforeWrite` gets what `first.beforeWrite` returned. */
export const combine = (first: WriterHook, second: WriterHook): WriterHook => {
  const both = (name: HookName): Pick<WriterHook, HookName> => {
    const hooks = [first, second].filter((hook) => hook[name] !== undefined)
    return hooks.length === 0
      ? {}
      : {
          [name]: (events: Events) => Effect.forEach(hooks, (hook) => runHook(hook, name, events), { discard: true })
        }
  }
  const before = [first.beforeWrite, second.beforeWrite].filter((f) => f !== undefined)
  return noteCombined({
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
  })
}
