/**
 * The lease of a replay: one for each dead letter topic and group, so that replays of several processes wait for each other and never end one another.
 *
 * A run asks for the lease by an entry in the journal, renews it every five seconds, and takes it once no live run stands before it. A run that is refused, interrupted or
 * done ends its entry; the entry of a killed process is over 15 seconds after its last renewal. Kafka alone decides what is published: a run that was suspended for longer
 * than its lease is fenced by the next one, and says so. It looks at the others again before it takes the lease, or fences anybody.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { ReplayRunning, ReplayTakenOver } from "../../Replay.ts"
import * as Clocks from "../base/clocks.ts"
import type * as Entries from "./leaseEntries.ts"
import * as LeaseLog from "./leaseLog.ts"
import * as OwnLease from "./ownLease.ts"
import * as Journal from "./replayJournal.ts"

/** Longer than the lease of a killed run lasts. */
const defaultWaitMillis = 20_000
const pollMillis = 250

export interface Options {
  readonly broker: Broker["Service"]
  readonly groupId: string
  readonly deadLetterTopic: string
  readonly hostname: string
  /** How many records the run has dealt with. Others are told. */
  readonly replayed: () => number
  /** How long the run waits for others before it is refused. Default 20 seconds. */
  readonly waitMillis?: number
}

export interface Lease {
  /** Fails when another run has taken over. A run asks before it fences others. */
  readonly confirm: Effect.Effect<void, BrokerError | ReplayTakenOver>
  /** Why the run was fenced, for its caller. */
  readonly takenOver: Effect.Effect<ReplayTakenOver>
}

/** Takes the lease, waiting for other runs, and keeps it until the scope closes. The journal must exist. */
export const acquire = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Lease, BrokerError | ReplayRunning, Scope.Scope> {
  const { broker, groupId, deadLetterTopic, replayed, waitMillis = defaultWaitMillis } = options
  const elapsedMillis = Clocks.stopwatch(yield* Clock.Clock)
  const topic = Journal.topicOf(deadLetterTopic)
  const run = globalThis.crypto.randomUUID()
  const log = yield* LeaseLog.open(broker, topic, groupId, run)
  const own = yield* OwnLease.make({ ...options, topic, run })
  const before = (least: bigint) =>
    Effect.map(log.others(least), (others) => others.find((other) => other.claim < own.claim || other.holder.holds))
  const successor = (least: bigint) =>
    Effect.map(log.others(least), (others) => others.find(({ holder }) => holder.holds))

  let blocker = yield* takeTurn(own, before)
  while (blocker !== undefined) {
    const waitedMillis = elapsedMillis()
    if (waitedMillis >= waitMillis) {
      const { host, pid, since: sinceMillis, replayed: count } = blocker.holder
      const who = { host, pid, sinceMillis, replayed: count }
      return yield* new ReplayRunning({ topic: deadLetterTopic, groupId, ...who, waitedMillis })
    }
    yield* Effect.sleep(pollMillis)
    blocker = yield* takeTurn(own, before)
  }

  const lost = (by: Entries.LeaseEntry | undefined): ReplayTakenOver =>
    new ReplayTakenOver({
      ...{ topic: deadLetterTopic, groupId, replayed: replayed() },
      ...(by === undefined ? {} : { host: by.holder.host, pid: by.holder.pid })
    })
  return {
    confirm: Effect.gen(function* () {
      if (own.isCertain()) return
      const by = yield* own.look(successor)
      if (by !== undefined) return yield* lost(by)
    }),
    takenOver: Effect.map(awaitQuietly(successor(own.claim)), lost)
  }
})

/** Takes the lease where no run stands before this one, and answers the one that does otherwise. */
const takeTurn = Effect.fnUntraced(function* (
  own: OwnLease.OwnLease,
  before: (least: bigint) => Effect.Effect<Entries.LeaseEntry | undefined, BrokerError>
) {
  const blocker = yield* own.look(before)
  if (blocker !== undefined) return blocker
  yield* own.hold(true)
  // Each run looks behind its own entry: of two that take each other for over, one at least sees the other.
  const other = yield* own.look(before)
  if (other !== undefined) yield* own.hold(false)
  return other
})

/** Nobody else may be known: an older version has no lease. */
const awaitQuietly = (successor: Effect.Effect<Entries.LeaseEntry | undefined, BrokerError>) =>
  Effect.catch(
    Effect.timeoutOrElse(successor, { duration: 5_000, orElse: () => Effect.undefined }),
    () => Effect.undefined
  )
