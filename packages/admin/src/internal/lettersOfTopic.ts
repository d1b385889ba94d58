/** The commands of the connector on dead letters: of all topics of a binding, or of one. */
import type { EventBusConnector, Replay, ReplayRun } from "@eventbus/core"
import * as Effect from "effect/Effect"

type Failure = EventBusConnector.BindingLookupError | Replay.InvalidArgument

export interface Letters {
  readonly deadLetters: (name: string) => Effect.Effect<Replay.DeadLetters, Failure>
  readonly runs: (name: string) => Effect.Effect<ReplayRun.Runs, Failure>
}

/** The commands on the dead letters of one topic; the given ones where none is named. */
export const of = (all: Letters, topic: string | undefined): Letters =>
  topic === undefined
    ? all
    : {
        deadLetters: (name) => Effect.flatMap(all.deadLetters(name), (letters) => letters.ofTopic(topic)),
        runs: (name) => Effect.flatMap(all.runs(name), (runs) => runs.ofTopic(topic))
      }
