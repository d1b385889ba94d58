/** The steps at which `outboxEffectivelyOnce.ts` can be killed, each between two effects. `KILL_AT` names one. */
import { Effect } from "effect"

export type Step =
  /** The order is inserted, its event is not. */
  | "inserted"
  /** Both are written, neither is committed. */
  | "written"
  /** Committed; nothing may have been published. */
  | "committed"
  /** The relay has the event, Kafka does not. */
  | "relaying"
  /** Kafka has acknowledged, the outbox does not know: the event will be published again. */
  | "published"
  /** The handler has received the record and has done nothing. */
  | "delivered"
  /** The handler has written, nothing is committed. */
  | "billed"
  /** The handler has committed, its offset is not: the record will be delivered again. */
  | "handled"

/** Kills this process with `kill -9` when `KILL_AT` names the step. */
export const reached = (step: Step): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (process.env.KILL_AT !== step) return Effect.void
    process.kill(process.pid, "SIGKILL")
    return Effect.never
  })
