/**
 * The entry of this run in the journal: written when the run asks for the lease, renewed every five seconds, and ended with the scope.
 *
 * It tells whether others can have taken it for over. A process that is suspended learns that from its clock when it goes on, and a renewal that comes late does not undo it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as Clocks from "../base/clocks.ts"
import * as Entries from "./leaseEntries.ts"

const renewalMillis = 5_000
/** Renewals that are no further apart leave nobody in doubt: the entry was never over. */
const certainMillis = 10_000
const releaseMillis = 2_000

export interface Options {
  readonly broker: Broker["Service"]
  readonly groupId: string
  readonly hostname: string
  /** How many records the run has dealt with. Others are told. */
  readonly replayed: () => number
  /** The journal. */
  readonly topic: string
  /** The id of the run. */
  readonly run: string
}

export interface OwnLease {
  /** The offset of the first entry, which decides who came first. */
  readonly claim: bigint
  /** Says whether the run holds the lease. */
  readonly hold: (holds: boolean) => Effect.Effect<void, BrokerError>
  /** False when others can have taken the entry for over since the last look at them. */
  readonly isCertain: () => boolean
  /** Looks at the others, behind the newest entry of this run, until the answer is certain. Answers at once when it finds one. */
  readonly look: <A>(
    find: (least: bigint) => Effect.Effect<A | undefined, BrokerError>
  ) => Effect.Effect<A | undefined, BrokerError>
}

export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<OwnLease, BrokerError, Scope.Scope> {
  const { broker, groupId, hostname, replayed, topic, run } = options
  const clock = yield* Clock.Clock
  const producer = yield* broker.producer({ deliveryTimeout: certainMillis, closeTimeout: releaseMillis })
  const elapsedMillis = Clocks.stopwatch(clock)
  const asked = { v: 1, host: hostname, pid: globalThis.process?.pid ?? 0, since: clock.currentTimeMillisUnsafe() }
  let holds = false
  let claim: bigint | undefined
  let newest = 0n
  let renewedMillis = 0
  let inDoubt = false
  const isCertain = () => !inDoubt && elapsedMillis() - renewedMillis < certainMillis

  const write = Effect.suspend(() => {
    const askedMillis = elapsedMillis()
    const holder = { ...asked, replayed: replayed(), holds }
    const entry = Entries.entry(topic, run, groupId, claim === undefined ? holder : { ...holder, claim: String(claim) })
    return Effect.map(producer.send(entry), ({ offset }) => {
      if (claim !== undefined && elapsedMillis() - renewedMillis >= certainMillis) inDoubt = true
      renewedMillis = Math.max(renewedMillis, askedMillis)
      newest = offset
      return offset
    })
  })
  const release = awaitAtMost(producer.send(Entries.tombstone(topic, run, groupId)), releaseMillis)
  yield* Effect.addFinalizer(() => Effect.ignore(release))
  const first = yield* write
  claim = first
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(renewalMillis), Effect.ignore(write))))

  return {
    claim: first,
    isCertain,
    hold: (value) =>
      Effect.suspend(() => {
        holds = value
        return Effect.asVoid(write)
      }),
    look: Effect.fnUntraced(function* <A>(find: (least: bigint) => Effect.Effect<A | undefined, BrokerError>) {
      while (true) {
        if (!isCertain()) {
          yield* write
          // A run that takes the lease from now on sees the entry that was written.
          inDoubt = false
        }
        const found = yield* find(newest)
        if (found !== undefined || isCertain()) return found
      }
    })
  }
})
