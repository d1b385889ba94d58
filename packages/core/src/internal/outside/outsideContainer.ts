/**
 * A binding that other processes run: the place of a container, without anything that could run it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Admin, Broker } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import type { Hold } from "../../FleetView.ts"
import { Hostname } from "../../Hostname.ts"
import type { BindingView, OutsideBinding } from "../../OutsideView.ts"
import type { NotOrderedPerKey, ParkedKeys } from "../../ParkedKeys.ts"
import type { DeadLetters } from "../../Replay.ts"
import type { Runs } from "../../ReplayRun.ts"
import type { RequestJournal } from "../../RequestJournal.ts"
import type { BindingSnapshot, OngoingFailure } from "../../Snapshot.ts"
import * as LogLine from "../base/logLine.ts"
import * as LettersOfTopics from "../deadLetters/lettersOfTopics.ts"
import * as ProcessHolds from "../fleet/processHolds.ts"
import * as Units from "../group/units.ts"
import { isUnreachable } from "../lifecycle/lagPoller.ts"
import * as Snapshots from "../lifecycle/snapshots.ts"
import * as OngoingFailures from "../observe/ongoingFailures.ts"
import * as KeyLines from "../parked/keyLines.ts"
import * as Parked from "../parked/parkedKeys.ts"
import * as Requests from "../requests/requestJournal.ts"
import * as RunsOfTopics from "../runs/runsOfTopics.ts"
import * as BindingAnnotations from "../settings/bindingAnnotations.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as GroupLook from "./groupLook.ts"

export interface OutsideContainer {
  readonly definition: BindingDefinition<unknown>
  readonly broker: Broker["Service"]
  readonly snapshot: Effect.Effect<BindingSnapshot>
  readonly deadLetters: DeadLetters
  readonly runs: Runs
  readonly parked: Effect.Effect<ParkedKeys, NotOrderedPerKey>
  readonly requests: RequestJournal
  /** As the cluster showed it last. */
  readonly seen: Effect.Effect<OutsideBinding>
  /** Asks the cluster. */
  readonly look: (admin: Admin) => Effect.Effect<void>
  /** The cluster could not be asked. */
  readonly failed: (error: BrokerError) => Effect.Effect<void>
}

/** Longest time that a cluster may take for one binding. Counting its dead letters may read some thousand of them. */
const answerMillis = 10_000

export const make = Effect.fnUntraced(function* <R>(
  definition: BindingDefinition<R>,
  broker: Broker["Service"],
  holds: () => ReadonlyArray<Hold>
): Effect.fn.Return<OutsideContainer, never, R> {
  const hostname = yield* Hostname
  const clock = yield* Clock.Clock
  const { groupId, deadLetterTopic } = definition
  const letters = LettersOfTopics.make(definition, broker, hostname, yield* Effect.context<R>())
  const runs = RunsOfTopics.make(definition, broker, hostname, () => false)
  const clusterStatus: { unreachable: OngoingFailure | undefined } = { unreachable: undefined }
  let view: BindingView | undefined
  let failure: OngoingFailure | undefined

  const sinceMillis = clock.currentTimeMillisUnsafe()
  const snapshot = Snapshots.take({
    ...{ definition, clusterStatus },
    state: () => "CREATED",
    sinceMillis: () => sinceMillis,
    pausing: {
      ...{ pausedBy: () => [], pausedTiers: () => [], readsHolds: () => false },
      fleetHolds: () => holds().filter((hold) => ProcessHolds.isOf(hold, definition))
    },
    ...{
      held: { list: () => [] },
      unreadableLetters: () => undefined,
      copyPublisher: { unpublished: () => undefined }
    },
    ...{ failures: OngoingFailures.ofBinding(clock), breaker: undefined, permits: undefined, parked: undefined },
    statuses: new Map()
  })
  const failed = (error: BrokerError) =>
    Effect.sync(() => {
      failure = { error, sinceMillis: failure?.sinceMillis ?? clock.currentTimeMillisUnsafe() }
      clusterStatus.unreachable = isUnreachable(error) ? failure : undefined
    })
  const worked = (found: BindingView) =>
    Effect.sync(() => {
      view = found
      failure = undefined
      clusterStatus.unreachable = undefined
    })

  return {
    ...{ definition, broker, snapshot, failed },
    ...{ deadLetters: letters.all, runs },
    parked: Parked.make({
      ...{ definition, broker, units: () => [], hasUnits: Units.areKept(definition) },
      // Nobody listens to events out here.
      onDecided: (given) =>
        Effect.annotateLogs(LogLine.warning(KeyLines.decided(given)), BindingAnnotations.ofKey(definition))
    }),
    requests: Requests.make({ broker, groupId, deadLetterTopic, hostname }),
    seen: Effect.map(snapshot, (taken) => ({ snapshot: taken, view, failure })),
    look: (admin) =>
      Effect.all({ groups: GroupLook.look(definition, admin), waiting: letters.all.countWaiting(admin) }).pipe(
        Effect.timeoutOrElse({
          duration: answerMillis,
          orElse: () => Effect.fail(new RequestTimedOut({ operation: "asking for positions", millis: answerMillis }))
        }),
        Effect.matchEffect({
          onSuccess: ({ groups, waiting }) =>
            worked({ ...groups, deadLetters: waiting, asOfMillis: clock.currentTimeMillisUnsafe() }),
          onFailure: failed
        })
      )
  }
})
