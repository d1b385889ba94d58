/**
 * Runs what a binding wants done with its stored dead letters (connector seed §4.7).
 */
import { Effect, type Scope } from "effect"
import type { Broker } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { DeadLetter } from "../../DeadLetter.ts"
import type { Replays } from "./replay.ts"
import * as Alerts from "./strategyAlerts.ts"
import * as Custom from "./strategyCustom.ts"
import type { OnEvent } from "./strategyEvents.ts"
import * as Schedule from "./strategySchedule.ts"

export interface Options<R> {
  readonly deadLetter: DeadLetter<R>
  readonly broker: Broker["Service"]
  /** The binding's group. */
  readonly groupId: string
  readonly deadLetterTopic: string
  /** The binding's replays, so that a scheduled one and a command wait for each other. */
  readonly replays: Pick<Replays, "replayDue">
  readonly onEvent: OnEvent
}

export interface Strategy {
  /** To be called with each dead letter once it is acknowledged, as it lies in the topic. Never waits, never throws. */
  readonly onStored: (record: ConsumerRecord) => void
}

const storeOnly: Strategy = { onStored: () => {} }

/** Runs the strategy until the scope closes; what it has begun is ended then, within ten seconds. */
export const run = <R>(options: Options<R>): Effect.Effect<Strategy, never, R | Scope.Scope> => {
  const { deadLetter, onEvent, replays } = options
  switch (deadLetter._tag) {
    case "StoreOnly":
      return Effect.succeed(storeOnly)
    case "AlertAndStore":
      return Effect.map(Alerts.make({ ...deadLetter, onEvent }), (onStored) => ({ onStored }))
    case "ScheduledReplay":
      return Effect.as(Effect.forkScoped(Schedule.run(replays, deadLetter, onEvent)), storeOnly)
    case "Custom":
      return Effect.as(Effect.forkScoped(Custom.run({ ...options, handler: deadLetter.handler })), storeOnly)
  }
}
