/**
 * The rehearsals of this process: each runs in the background, and its result is kept for a while.
 */
import { randomUUID } from "node:crypto"
import { LogLine, type Rehearsal } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { RehearsalNotFound, RehearsalRunning } from "../AdminError.ts"

/** How long a result is kept after the end of its rehearsal. */
const keptMillis = 15 * 60_000

/** Most results that are kept, the newest. */
const mostKept = 50

/** A rehearsal and how it ended. */
export interface Kept {
  readonly id: string
  readonly binding: string
  readonly startedMillis: number
  /** Undefined while it runs. */
  readonly end: { readonly atMillis: number; readonly exit: Exit.Exit<Rehearsal.Report, unknown> } | undefined
}

export interface Rehearsals {
  /** Begins one, unless the binding has one that runs. */
  readonly begin: (
    binding: string,
    rehearse: Effect.Effect<Rehearsal.Report, unknown>
  ) => Effect.Effect<Kept, RehearsalRunning>
  readonly find: (binding: string, id: string) => Effect.Effect<Kept, RehearsalNotFound>
}

/** Closing the scope ends those that run. */
export const make: Effect.Effect<Rehearsals, never, Scope.Scope> = Effect.gen(function* () {
  const scope = yield* Effect.scope
  /** By id, the oldest first. */
  const kept = new Map<string, Kept>()

  const forget = (nowMillis: number) => {
    const ended = Array.from(kept.values()).filter(({ end }) => end !== undefined)
    for (const [index, { id, end }] of ended.entries()) {
      if (index < ended.length - mostKept || end!.atMillis + keptMillis <= nowMillis) kept.delete(id)
    }
  }

  const run = Effect.fnUntraced(function* (begun: Kept, rehearse: Effect.Effect<Rehearsal.Report, unknown>) {
    const exit = yield* Effect.exit(rehearse)
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause))
      yield* LogLine.error(`Rehearsal '${begun.id}' of binding '${begun.binding}' failed`, exit.cause)
    kept.set(begun.id, { ...begun, end: { atMillis: yield* Clock.currentTimeMillis, exit } })
  })

  return {
    begin: (binding, rehearse) =>
      Effect.gen(function* () {
        const nowMillis = yield* Clock.currentTimeMillis
        forget(nowMillis)
        const running = Array.from(kept.values()).find((each) => each.binding === binding && each.end === undefined)
        if (running !== undefined) return yield* new RehearsalRunning({ binding, id: running.id })
        const begun: Kept = { id: randomUUID(), binding, startedMillis: nowMillis, end: undefined }
        kept.set(begun.id, begun)
        yield* Effect.forkIn(run(begun, rehearse), scope)
        return begun
      }),
    find: (binding, id) =>
      Effect.gen(function* () {
        forget(yield* Clock.currentTimeMillis)
        const found = kept.get(id)
        // Permission on one binding is none on another one's.
        return found?.binding === binding ? found : yield* new RehearsalNotFound({ binding, id })
      })
  }
})
