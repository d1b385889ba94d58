/**
 * Runs the dead letter strategy of a binding (connector seed §4.7).
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { DeadLetter } from "../../DeadLetter.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"
import type * as CopyOwner from "../record/copyOwner.ts"
import type { Replays } from "../replay/replay.ts"
import * as Alerts from "./strategyAlerts.ts"
import * as Custom from "./strategyCustom.ts"
import type { OnEvent } from "./strategyEvents.ts"
import * as Schedule from "./strategySchedule.ts"
import * as Unreadable from "./strategyUnreadable.ts"

/** The groups are the binding's own, and those that it adopts. */
export interface Options<R> extends CopyOwner.Groups {
  readonly deadLetter: DeadLetter<R>
  readonly broker: Broker["Service"]
  readonly deadLetterTopic: string
  /** The replays of the binding, so that the scheduled replay and an operator's command wait for each other. */
  readonly replays: Pick<Replays, "replayDue">
  readonly onEvent: OnEvent
  /** Told of each failure that keeps the strategy from its work, and of its end. */
  readonly failures: Pick<OngoingFailures, "failed" | "worked">
  /** The longest time of one call of a custom handler. */
  readonly handlerTimeoutMillis: number
  /** The largest record of a compressed batch that a custom handler gets. */
  readonly maxBufferedBytes: number
}

export interface Strategy {
  /** Call it with each dead letter as it is stored in the topic, once the broker has acknowledged it. Never waits, never throws. */
  readonly onStored: (record: ConsumerRecord) => void
  /** The batches that a custom handler's consumer cannot read, and how an operator passes one. */
  readonly unreadable: Pick<Unreadable.UnreadableLetters, "list" | "skip">
}

const storeOnly: Strategy = {
  onStored: () => {},
  unreadable: { list: () => [], skip: () => Effect.succeed(false) }
}

/** Runs the strategy until the scope closes. Running handlers then get up to ten seconds to end. */
export const run = <R>(options: Options<R>): Effect.Effect<Strategy, never, R | Scope.Scope> => {
  const { deadLetter, onEvent, replays, failures } = options
  switch (deadLetter._tag) {
    case "StoreOnly":
      return Effect.succeed(storeOnly)
    case "AlertAndStore":
      return Effect.map(Alerts.make({ ...deadLetter, onEvent }), (onStored) => ({ ...storeOnly, onStored }))
    case "ScheduledReplay":
      return Effect.as(Effect.forkScoped(Schedule.run(replays, deadLetter, onEvent, failures)), storeOnly)
    case "Custom": {
      const unreadable = Unreadable.make(options)
      const call = { handler: deadLetter.handler, timeoutMillis: options.handlerTimeoutMillis }
      return Effect.forkScoped(Custom.run({ ...options, ...call, unreadable })).pipe(
        Effect.andThen(Effect.forkScoped(unreadable.watch)),
        Effect.as({ ...storeOnly, unreadable })
      )
    }
  }
}
