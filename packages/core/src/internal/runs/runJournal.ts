/**
 * Reads the plans and runs of a group from the journal of replays, and writes what operators decide about them.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import * as JournalTail from "../replay/journalTail.ts"
import * as LeaseEntries from "../replay/leaseEntries.ts"
import * as Journal from "../replay/replayJournal.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as Entries from "./runEntries.ts"

export interface Options {
  readonly broker: Broker["Service"]
  readonly groupId: string
  readonly deadLetterTopic: string
}

export interface RunJournal {
  /** The journal topic. */
  readonly topic: string
  /** Reads on, past everything that was written before the call. */
  readonly load: Effect.Effect<void, BrokerError>
  /** Reads on, as far as no open transaction hides anything. */
  readonly poll: Effect.Effect<void, BrokerError>
  /** As read by now. */
  readonly told: (id: string) => Entries.Told | undefined
  readonly all: () => ReadonlyArray<Entries.Told>
  /** The newest time that the cluster appended a record at, in a journal that has such times. */
  readonly newestMillis: () => number | undefined
}

/** Opens the journal, which need not exist. Nothing is read yet. */
export const open = Effect.fnUntraced(function* (
  { broker, groupId, deadLetterTopic }: Options,
  admin: Admin
): Effect.fn.Return<RunJournal, BrokerError, Scope.Scope> {
  const topic = Journal.topicOf(deadLetterTopic)
  const all = new Map<string, Entries.Told>()
  let newestMillis: number | undefined
  const { toEnd } = yield* JournalTail.open(broker, topic, "read_committed", (record) => {
    const appended = LeaseEntries.appendedMillisOf(record)
    if (appended !== undefined) newestMillis = Math.max(newestMillis ?? appended, appended)
    Entries.apply(all, groupId, record)
  })
  const load = Effect.gen(function* () {
    const [log] = yield* ReplayProgress.logOffsetsOf(admin, topic)
    if (log !== undefined && log.logEnd > log.logStart) yield* toEnd(log.logEnd - 1n)
  })
  return {
    ...{ topic, load, poll: toEnd() },
    told: (id) => all.get(id),
    all: () => Array.from(all.values()),
    newestMillis: () => newestMillis
  }
})

/** A killed writer hides the journal for so long. */
const transactionTimeout = "15 seconds"

/** Two operators who write at once fence each other: the one who is fenced tries again. */
const mostTries = 10

/** Writes entries in a transaction of their own, which fences no replay. Creates the journal where it is missing. */
export const write = (
  { broker, groupId, deadLetterTopic }: Options,
  admin: Admin,
  entries: ReadonlyArray<ProducerRecord>
): Effect.Effect<void, BrokerError> => {
  const transactionalId = DerivedNames.runsTransactionalId(groupId, deadLetterTopic)
  const once = Effect.gen(function* () {
    const producer = yield* broker.transactionalProducer({ transactionalId, transactionTimeout })
    yield* producer.transaction((transaction) => transaction.sendAll(entries))
  }).pipe(Effect.scoped)
  const retried = Effect.retry(once, {
    times: mostTries,
    schedule: Schedule.jittered(Schedule.spaced("100 millis")),
    while: ({ _tag }) => _tag === "ProducerFenced"
  })
  return Effect.andThen(Journal.ensure(admin, deadLetterTopic), retried)
}
