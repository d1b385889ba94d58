/** Audits the commands that work straight on a cluster, where the file has `eventbus.audit`. */
import { hostname, userInfo } from "node:os"
import { Audit, type AuditView } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** The user of the operating system: Kafka's own principal is not known here. */
export const user = (): string => {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return `unknown@${hostname()}`
  }
}

export type Command = Omit<AuditView.Action, "by" | "from">

const actionOf = (command: Command): AuditView.Action => ({ ...command, by: user(), from: "command-line" })

export interface Audited {
  /** Runs a command that changes something. `run`: the id of what it has begun. */
  readonly change: <A, E, R>(
    command: Command,
    effect: Effect.Effect<A, E, R>,
    run?: (answer: A) => string
  ) => Effect.Effect<A, E | AuditView.AuditUnavailable, R>
  /** Runs a command that shows payloads, and notes that before it answers. */
  readonly view: <A, E, R>(
    command: Omit<Command, "permissions">,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | AuditView.AuditUnavailable, R>
}

/** Does nothing where there is no audit log. */
export const make: Effect.Effect<Audited> = Effect.map(
  Effect.serviceOption(Audit.Audit),
  Option.match({
    onNone: (): Audited => ({ change: (_, effect) => effect, view: (_, effect) => effect }),
    onSome: (log): Audited => ({
      change: Effect.fnUntraced(function* (command, effect, run) {
        let action = actionOf(command)
        const id = yield* log.begin(action)
        const told = Effect.tap(effect, (answer) =>
          Effect.sync(() => {
            if (run !== undefined) action = { ...action, run: run(answer) }
          })
        )
        return yield* Effect.onExit(told, (exit) => log.end(id, action, Audit.endingOf(exit)))
      }),
      view: (command, effect) =>
        Effect.tap(effect, () => log.view(actionOf({ ...command, permissions: ["view", "view-payload"] })))
    })
  })
)
