/**
 * The parts of a process's port with a planted bug in them.
 */
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import { Effect, Queue, Result } from "effect"
import * as Copies from "../history/copies.ts"
import { decoder } from "../scenario/plannedRecords.ts"

export type Publisher = Pick<Broker.Producer, "send" | "sendEach">

/** Changes that a planted bug makes to a session. Each part is independent; missing parts stay correct. */
export interface Sabotage {
  readonly commit?: (offsets: ReadonlyArray<Broker.OffsetCommit>) => ReadonlyArray<Broker.OffsetCommit>
  readonly seek?: (offset: bigint) => bigint
  readonly resume?: "ignored"
  /** The session starts a partition where it committed last, whatever topic that was. */
  readonly positions?: "kept"
  /** The record that is sent instead of a copy to a retry or dead letter topic; without one the copy only counts as sent. */
  readonly copies?: (copy: ConsumerRecord.ProducerRecord) => ReadonlyArray<ConsumerRecord.ProducerRecord>
  /** The same for the copies of a replay. */
  readonly replays?: (copy: ConsumerRecord.ProducerRecord) => ReadonlyArray<ConsumerRecord.ProducerRecord>
  /** Whether a claim of order per key is written to a topic. It counts as sent all the same. */
  readonly claims?: (topic: string) => boolean
  /** Offsets are committed in a transaction of their own, before or after the one that they belong to. */
  readonly offsets?: "before" | "after"
  /** Records that a handler publishes in a transaction are published outside it. */
  readonly outputs?: "outside"
  /** Rewrites the session's events, one by one. */
  readonly events?: (
    clusterId: string
  ) => (event: Broker.ConsumerEvent) => Effect.Effect<ReadonlyArray<Broker.ConsumerEvent>>
}

export const sabotagedPublisher = (producer: Publisher, copies: NonNullable<Sabotage["copies"]>): Publisher => {
  const send: Broker.Producer["send"] = (record) => {
    if (Copies.read(record) === undefined) return producer.send(record)
    const sent = Effect.forEach(copies(record), (copy) => producer.send(copy))
    return Effect.map(sent, ([metadata]) => metadata ?? { topic: record.topic, partition: 0, offset: 0n })
  }
  return {
    send,
    sendEach: (records, onAnswer) =>
      Effect.forEach(
        records,
        (record, index) => Effect.map(Effect.result(send(record)), (answer) => onAnswer(index, answer)),
        { concurrency: "unbounded", discard: true }
      )
  }
}

/** A publisher whose claims are not all written. */
export const withoutClaims = (producer: Publisher, isWritten: NonNullable<Sabotage["claims"]>): Publisher => ({
  send: producer.send,
  sendEach: (records, onAnswer) => {
    const [record] = records
    if (records.length > 1 || record === undefined || !isClaim(record) || isWritten(record.topic))
      return producer.sendEach(records, onAnswer)
    const answer = { topic: record.topic, partition: record.partition ?? 0, offset: -1n }
    return Effect.sync(() => onAnswer(0, Result.succeed(answer)))
  }
})

const isClaim = ({ headers = [] }: ConsumerRecord.ProducerRecord): boolean =>
  headers.some(({ key, value }) => key === "x-eventbus-order-kind" && decoder.decode(value ?? undefined) === "claim")

export const sabotaged = Effect.fnUntraced(function* (
  broker: Broker.Broker["Service"],
  session: Broker.ConsumerSession,
  sabotage: Sabotage
) {
  const { commit, seek, resume, positions, events } = sabotage
  const kept = new Map<string, bigint>()
  const keeping: Pick<Broker.ConsumerSession, "commit" | "seek"> = {
    commit: (offsets) => {
      for (const { topic, partition, offset } of offsets) kept.set(`${topic}/${partition}`, offset)
      return session.commit(offsets)
    },
    seek: (at, offset) => {
      const before = kept.get(`${at.topic}/${at.partition}`)
      return session.seek(at, before === undefined || before < offset ? offset : before)
    }
  }
  const changed: Broker.ConsumerSession = {
    ...session,
    ...(commit === undefined ? {} : { commit: (offsets) => session.commit(commit(offsets)) }),
    ...(seek === undefined ? {} : { seek: (partition, offset) => session.seek(partition, seek(offset)) }),
    ...(positions === undefined ? {} : keeping),
    ...(resume === undefined ? {} : { resume: () => Effect.void })
  }
  if (events === undefined) return changed
  // Unbounded, since its reader takes every event at once.
  const queue = yield* Queue.unbounded<Broker.ConsumerEvent, BrokerError.BrokerError>()
  const { clusterId } = yield* Effect.scoped(broker.admin)
  const rewrite = events(clusterId)
  yield* Queue.takeAll(session.events).pipe(
    Effect.flatMap((taken) => Effect.forEach(taken, rewrite)),
    Effect.flatMap((rewritten) => Queue.offerAll(queue, rewritten.flat())),
    Effect.forever,
    Effect.onError((cause) => Queue.failCause(queue, cause)),
    Effect.forkScoped
  )
  return { ...changed, events: queue }
})

/** The transactions of a producer, with a part of each outside it. */
export const sabotagedTransactions = Effect.fnUntraced(function* (
  broker: Broker.Broker["Service"],
  producer: Broker.TransactionalProducer,
  options: Broker.TransactionalProducerOptions,
  { offsets, outputs }: Sabotage
) {
  const outside = outputs === undefined ? undefined : yield* broker.producer()
  const other =
    offsets === undefined
      ? undefined
      : yield* broker.transactionalProducer({ ...options, transactionalId: `${options.transactionalId}/other` })
  const transaction: Broker.TransactionalProducer["transaction"] = (use) =>
    Effect.suspend(() => {
      let later: Effect.Effect<void, BrokerError.BrokerError> = Effect.void
      const used = producer.transaction((open) => {
        const sendOffsets: Broker.Transaction["sendOffsets"] = (...given) => {
          if (other === undefined) return open.sendOffsets(...given)
          const sent = other.transaction((apart) => apart.sendOffsets(...given))
          if (offsets === "before") return sent
          later = sent
          return Effect.void
        }
        const send: Broker.Producer["send"] = (record) =>
          outside === undefined || Copies.read(record) !== undefined ? open.send(record) : outside.send(record)
        return use({ ...open, sendOffsets, send })
      })
      return Effect.tap(used, () => Effect.orDie(Effect.suspend(() => later)))
    })
  return { ...producer, transaction }
})
