/**
 * The lease of a replay: one for each dead letter topic and group, so that replays of several processes wait for each other and never end one another.
 *
 * A run asks for the lease by an entry in the journal, renews it every five seconds, and takes it once no live run stands before it. A run that is refused, interrupted or
 * done ends its entry; the entry of a killed process is over 15 seconds after its last renewal. Kafka alone decides what is published: a run that was suspended for longer
 * than its lease is fenced by the next one, and says so.
 */
import { Clock, Effect, type Scope } from "effect"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { ReplayRunning, ReplayTakenOver } from "../../Replay.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as Clocks from "../base/clocks.ts"
import * as Entries from "./leaseEntries.ts"
import * as LeaseLog from "./leaseLog.ts"
import * as Journal from "./replayJournal.ts"

/** How long a run waits for others before it is refused: longer than the lease of a killed one lasts. */
const maxWaitMillis = 20_000
const renewalMillis = 5_000
const pollMillis = 250
/** A lease that was renewed so recently is nobody else's. */
const certainMillis = 10_000
const releaseMillis = 2_000

export interface Options {
  readonly broker: Broker["Service"]
  readonly groupId: string
  readonly deadLetterTopic: string
  readonly hostname: string
  /** How many records the run has dealt with. Others are told. */
  readonly replayed: () => number
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
  const { broker, groupId, deadLetterTopic, hostname, replayed } = options
  const clock = yield* Clock.Clock
  const elapsedMillis = Clocks.stopwatch(clock)
  const topic = Journal.topicOf(deadLetterTopic)
  const run = globalThis.crypto.randomUUID()
  const producer = yield* broker.producer({ deliveryTimeout: certainMillis, closeTimeout: releaseMillis })
  const log = yield* LeaseLog.open(broker, topic, groupId, run)
  const since = clock.currentTimeMillisUnsafe()
  const pid = globalThis.process?.pid ?? 0
  let claim: bigint | undefined
  let holds = false
  let renewedMillis = 0

  const write = Effect.suspend(() => {
    const askedMillis = elapsedMillis()
    const holder = { v: 1, host: hostname, pid, since, replayed: replayed(), holds }
    const entry = Entries.entry(topic, run, groupId, claim === undefined ? holder : { ...holder, claim: String(claim) })
    return Effect.tap(producer.send(entry), () => Effect.sync(() => (renewedMillis = askedMillis)))
  })
  const release = awaitAtMost(producer.send(Entries.tombstone(topic, run, groupId)), releaseMillis)
  yield* Effect.addFinalizer(() => Effect.ignore(release))
  const first = (yield* write).offset
  claim = first
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(renewalMillis), Effect.ignore(write))))

  const before = Effect.map(log.others(first), (others) =>
    others.find((other) => other.claim < first || other.holder.holds)
  )
  let blocker = yield* before
  while (blocker !== undefined) {
    const waitedMillis = elapsedMillis()
    if (waitedMillis >= maxWaitMillis) {
      const { host, pid: process, since: sinceMillis, replayed: count } = blocker.holder
      const who = { host, pid: process, sinceMillis, replayed: count }
      return yield* new ReplayRunning({ topic: deadLetterTopic, groupId, ...who, waitedMillis })
    }
    yield* Effect.sleep(pollMillis)
    blocker = yield* before
  }
  holds = true
  yield* write

  const successor = Effect.map(log.others(first), (others) => others.find(({ holder }) => holder.holds))
  const lost = (by: Entries.LeaseEntry | undefined): ReplayTakenOver =>
    new ReplayTakenOver({
      ...{ topic: deadLetterTopic, groupId, replayed: replayed() },
      ...(by === undefined ? {} : { host: by.holder.host, pid: by.holder.pid })
    })
  return {
    confirm: Effect.gen(function* () {
      if (elapsedMillis() - renewedMillis < certainMillis) return
      yield* write
      const by = yield* successor
      if (by !== undefined) return yield* lost(by)
    }),
    takenOver: Effect.map(awaitQuietly(successor), lost)
  }
})

/** Nobody else may be known: an older version has no lease. */
const awaitQuietly = (successor: Effect.Effect<Entries.LeaseEntry | undefined, BrokerError>) =>
  Effect.catch(
    Effect.timeoutOrElse(successor, { duration: 5_000, orElse: () => Effect.undefined }),
    () => Effect.undefined
  )
