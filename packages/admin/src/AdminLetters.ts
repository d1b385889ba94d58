/**
 * The operations of an administrator on the dead letters of a binding. They are a part of `EventBusAdmin`, whose `ofTopic` has those on one of several topics.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Effect } from "effect"
 *
 * export const replayed = Effect.gen(function* () {
 *   const admin = yield* EventBusAdmin.EventBusAdmin
 *   return yield* admin.ofTopic("payments").replay("billing", 10)
 * })
 * ```
 */
import type {
  BrokerError,
  DeadLetterGroup,
  DeadLetterList,
  DeadLetterSelection,
  EventBusConnector,
  Rehearsal,
  Replay
} from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type { DeadLetterNotFound, RehearsalNotFound, RehearsalRunning } from "./AdminError.ts"
import type { AdminRuns, View } from "./AdminRuns.ts"
import type { AdminTransforms } from "./AdminTransforms.ts"
import type * as Answers from "./Answers.ts"
import type * as DeadLetterAnswers from "./DeadLetterAnswers.ts"

/** The failures of a command on dead letters. */
export type DeadLetterError = EventBusConnector.BindingLookupError | BrokerError.BrokerError | Replay.InvalidArgument

/** The operations. A name is that of a binding, or `{cluster}:{binding}`. */
export interface AdminLetters extends AdminRuns, Omit<AdminTransforms, "transforms"> {
  /** Publishes the next `count` dead letters to where they came from. */
  readonly replay: (
    name: string,
    count: number
  ) => Effect.Effect<Answers.ReplayReport, DeadLetterError | Replay.ReplayError>
  /** Publishes the dead letters that were dead-lettered at `fromMillis` or later, before `toMillis`. */
  readonly replayWindow: (
    name: string,
    fromMillis: number,
    toMillis: number
  ) => Effect.Effect<Answers.ReplayReport, DeadLetterError | Replay.ReplayError>
  /** Publishes the next `count` dead letters to the retry topic of a tier, from 1. */
  readonly replayToTier: (
    name: string,
    tier: number,
    count: number
  ) => Effect.Effect<Answers.ReplayReport, DeadLetterError | Replay.ReplayError | Replay.UnknownTier>
  /** Counts the dead letters that are not dealt with. Reads the whole topic. */
  readonly stats: (name: string) => Effect.Effect<Answers.DeadLetterStats, DeadLetterError>
  /** Deletes what was dead-lettered before a time, as far as no younger record lies before it. */
  readonly purge: (
    name: string,
    beforeMillis: number
  ) => Effect.Effect<Answers.PurgeReport, DeadLetterError | Replay.NotPurgeable | Replay.ForeignDeadLetters>
  /** The dead letters by the reason of their failure. Reads the whole topic. */
  readonly groups: (
    name: string,
    options?: DeadLetterGroup.Options & View
  ) => Effect.Effect<DeadLetterAnswers.Groups, DeadLetterError>
  /** Dead letters, the newest first, page by page. A text is looked for in the payload only where that is shown. */
  readonly letters: (
    name: string,
    query?: Omit<DeadLetterList.Query, "searchesPayload"> & View
  ) => Effect.Effect<DeadLetterAnswers.Page, DeadLetterError>
  /** One dead letter. */
  readonly letter: (
    name: string,
    position: DeadLetterSelection.Position,
    view?: View
  ) => Effect.Effect<DeadLetterAnswers.Letter, DeadLetterError | DeadLetterNotFound>
  /** Begins a rehearsal of dead letters, one at a time for a binding, and answers at once. It goes on in the background, until the service closes at the latest. */
  readonly rehearse: (
    name: string,
    selection: DeadLetterSelection.DeadLetterSelection,
    options?: Rehearsal.Options
  ) => Effect.Effect<
    DeadLetterAnswers.Rehearsal,
    EventBusConnector.BindingLookupError | Replay.InvalidArgument | RehearsalRunning
  >
  /** A rehearsal of this process, while it runs and for 15 minutes after its end. */
  readonly rehearsal: (
    name: string,
    id: string,
    view?: View
  ) => Effect.Effect<DeadLetterAnswers.Rehearsal, EventBusConnector.BindingLookupError | RehearsalNotFound>
}
