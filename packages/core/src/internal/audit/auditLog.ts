/** The audit log of a program: what is written before and after an action, and what becomes of an action whose entry cannot be written. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Action, AuditUnavailable, type Ending } from "../../AuditView.ts"
import type { Broker } from "../../Broker.ts"
import * as LogLine from "../base/logLine.ts"
import type { NewEntry } from "./auditEntries.ts"
import * as AuditWriter from "./auditWriter.ts"
import { endingOf } from "./endings.ts"
import * as Repeats from "./repeats.ts"

export interface Options {
  readonly broker: Broker["Service"]
  readonly topic: string
  readonly hostname: string
  readonly timeoutMillis: number
  readonly whenUnwritable: "refuse" | "proceed"
}

export interface AuditLog {
  readonly begin: (action: Action) => Effect.Effect<string, AuditUnavailable>
  readonly end: (id: string, action: Action, ending: Ending) => Effect.Effect<void>
  readonly view: (action: Action) => Effect.Effect<void, AuditUnavailable>
  readonly refused: (action: Action, error: string) => Effect.Effect<void>
  readonly around: <A, E, R>(action: Action, run: Effect.Effect<A, E, R>) => Effect.Effect<A, E | AuditUnavailable, R>
}

export const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<AuditLog, never, Scope.Scope> {
  const { topic, hostname, whenUnwritable } = options
  const append = yield* AuditWriter.make(options.broker, topic, options.timeoutMillis)
  const repeats = Repeats.make()

  const write = (id: string, action: Action, ending: Ending | undefined, count = 0) =>
    append({ id, host: hostname, action, ending, repeats: count })
  /** An entry that is lost for the topic is not lost for the log. */
  const lost = (action: Action, ending: Ending | undefined, detail: string) =>
    LogLine.error(`The audit topic '${topic}' cannot be written: ${detail} The entry: ${textOf(action, ending)}`)
  /** Writes an entry that nothing depends on any more. */
  const tell = (id: string, action: Action, ending: Ending, count = 0) =>
    Effect.catch(write(id, action, ending, count), ({ message }) => lost(action, ending, message))
  /** Writes an entry that has to be there before anything else happens. */
  const demand = (id: string, action: Action, ending: Ending | undefined, count = 0) =>
    Effect.catch(write(id, action, ending, count), ({ message }) =>
      whenUnwritable === "proceed"
        ? lost(action, ending, message)
        : Effect.andThen(
            lost(action, { outcome: "refused", error: "AuditUnavailable" }, message),
            Effect.fail(new AuditUnavailable({ topic, detail: message }))
          )
    )
  /** Writes unless one like it was written within a minute. */
  const counted = <E>(kind: string, writeIt: (count: number) => Effect.Effect<void, E>): Effect.Effect<void, E> =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
      const count = repeats.due(kind, nowMillis)
      if (count === undefined) return Effect.void
      return Effect.tap(writeIt(count), () => Effect.sync(() => repeats.written(kind, nowMillis)))
    })

  const begin = Effect.fnUntraced(function* (action: Action) {
    const id = globalThis.crypto.randomUUID()
    yield* demand(id, action, undefined)
    return id
  })

  return {
    begin,
    end: tell,
    view: (action) => {
      const kind = JSON.stringify(["view", action])
      return counted(kind, (count) => demand(globalThis.crypto.randomUUID(), action, { outcome: "done" }, count))
    },
    refused: (action, error) => {
      const ending = { outcome: "refused", error } as const
      const write = (count: number) => tell(globalThis.crypto.randomUUID(), action, ending, count)
      // A stranger can knock as often as it likes, with whatever names.
      return action.by === undefined ? counted(JSON.stringify([action.action, error]), write) : write(0)
    },
    around: Effect.fnUntraced(function* (action, run) {
      const id = yield* begin(action)
      return yield* Effect.onExit(run, (exit) => tell(id, action, endingOf(exit)))
    })
  }
})

const textOf = (action: Action, ending: NewEntry["ending"]): string =>
  JSON.stringify({ ...action, ...(ending ?? { outcome: "begun" }) })
