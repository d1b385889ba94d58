/**
 * Claims of requests: written when a process wants to do the work, and read to the end of the journal, where the first claim that is not over wins. The loser ends its own.
 *
 * A claim is over 24 hours after its last entry. The newest record of the journal, which is not older than the reader's own claim, tells the cluster's time, as far as this
 * process's wall clock agrees: a clock that is ahead, of one broker or of one process, lets no claim end early.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Broker, Producer } from "../../Broker.ts"
import { type Granted, keptMillis, type Request, type RequestJournal, type Taken } from "../../RequestJournal.ts"
import * as JournalTail from "../replay/journalTail.ts"
import * as Journal from "../replay/replayJournal.ts"
import * as Entries from "./requestEntries.ts"

export interface Options {
  readonly broker: Broker["Service"]
  readonly groupId: string
  readonly deadLetterTopic: string
  readonly hostname: string
}

/** A caller waits for each entry. */
const producerTimeouts = { deliveryTimeout: 5_000, closeTimeout: 2_000 } as const

/** Claims that are over are deleted when somebody makes another one, so many at once. */
const mostDeleted = 100

export const make = (options: Options): RequestJournal => ({
  claim: Effect.fnUntraced(function* (request) {
    const { broker, groupId, deadLetterTopic, hostname: host } = options
    const topic = Journal.topicOf(deadLetterTopic)
    yield* Journal.ensure(yield* broker.admin, deadLetterTopic)
    const producer = yield* broker.producer(producerTimeouts)
    const own = { id: request.id, claim: globalThis.crypto.randomUUID() }
    const entry = { v: 1, host, pid: globalThis.process?.pid ?? 0, fingerprint: request.fingerprint }
    const write = (next: Entries.RequestEntry | null) => producer.send(Entries.record(topic, groupId, own, next))
    const release = Effect.asVoid(write(null))

    return yield* Effect.gen(function* () {
      const { offset } = yield* write(entry)
      const { claims, newestMillis } = yield* read(options, topic, offset)
      const nowMillis = Math.min(newestMillis, yield* Clock.currentTimeMillis)
      const isOver = ({ millis }: Entries.Claim) => nowMillis - millis >= keptMillis
      yield* deleteOver(producer, topic, groupId, claims.filter(isOver))
      const first = firstOf(claims, request, (claim) => claim.claim === own.claim || !isOver(claim))
      if (first !== undefined && first.claim !== own.claim) {
        yield* Effect.ignore(release)
        return takenBy(first)
      }
      const granted: Granted = {
        _tag: "Granted",
        keep: (answer) => Effect.asVoid(write({ ...entry, claim: String(offset), answer })),
        release
      }
      return granted
    }).pipe(
      // An entry that was written after all must not look like work that somebody does.
      Effect.onError(() => Effect.ignore(release))
    )
  })
})

/** The claims of the group, as the journal has them behind an offset. */
const read = Effect.fnUntraced(
  function* ({ broker, groupId }: Options, topic: string, least: bigint) {
    const claims = new Map<string, Entries.Claim>()
    let newestMillis = 0
    // Claims are written without a transaction, and a replay's open one must not hide them.
    const { toEnd } = yield* JournalTail.open(broker, topic, "read_uncommitted", (record) => {
      newestMillis = record.timestamp
      Entries.apply(claims, groupId, record)
    })
    yield* toEnd(least)
    return { claims: Array.from(claims.values()), newestMillis }
  },
  (effect) => Effect.scoped(effect)
)

const firstOf = (
  claims: ReadonlyArray<Entries.Claim>,
  { id }: Request,
  counts: (claim: Entries.Claim) => boolean
): Entries.Claim | undefined =>
  claims
    .filter((claim) => claim.id === id && counts(claim))
    .reduce<Entries.Claim | undefined>(
      (first, claim) => (first === undefined || claim.offset < first.offset ? claim : first),
      undefined
    )

const takenBy = ({ entry, millis }: Entries.Claim): Taken => ({
  ...{ _tag: "Taken", fingerprint: entry.fingerprint, answer: entry.answer },
  ...{ host: entry.host, pid: entry.pid, sinceMillis: millis }
})

/** When it fails, the next claim does it again. */
const deleteOver = (
  producer: Producer,
  topic: string,
  groupId: string,
  over: ReadonlyArray<Entries.Claim>
): Effect.Effect<void> =>
  over.length === 0
    ? Effect.void
    : Effect.ignore(
        producer.sendAll(over.slice(0, mostDeleted).map((claim) => Entries.record(topic, groupId, claim, null)))
      )
