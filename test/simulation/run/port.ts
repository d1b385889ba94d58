/**
 * The Broker port of one simulated process. It names the clients, so that they can be killed, and records commits and copies. Bugs can be planted in it.
 */
import { type Broker, BrokerError, type ConsumerRecord } from "@eventbus/core"
import { Effect, Queue, Result } from "effect"
import * as Copies from "../history/copies.ts"
import type { History } from "../history/History.ts"

/** Changes that a planted bug makes to a session. Each part is independent; missing parts stay correct. */
export interface Sabotage {
  readonly commit?: (offsets: ReadonlyArray<Broker.OffsetCommit>) => ReadonlyArray<Broker.OffsetCommit>
  readonly seek?: (offset: bigint) => bigint
  readonly resume?: "ignored"
  /** The record that is sent instead of a copy to a retry or dead letter topic; without one the copy only counts as sent. */
  readonly copies?: (copy: ConsumerRecord.ProducerRecord) => ReadonlyArray<ConsumerRecord.ProducerRecord>
  /** Rewrites the session's events, one by one. */
  readonly events?: () => (event: Broker.ConsumerEvent) => Effect.Effect<ReadonlyArray<Broker.ConsumerEvent>>
}

export const ofProcess = (
  broker: Broker.Broker["Service"],
  history: History,
  process: string,
  sabotage: Sabotage | undefined
): Broker.Broker["Service"] => {
  const machine = process.slice(0, process.indexOf("."))
  const whileAlive = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.suspend(
      (): Effect.Effect<A, E | BrokerError.BrokerError, R> => (history.isKilled(process) ? Effect.fail(killed) : effect)
    )
  const publisher = (producer: Publisher): Publisher => {
    const noting = watched(producer, history, process)
    return sabotage?.copies === undefined ? noting : sabotagedPublisher(noting, sabotage.copies)
  }
  return {
    consumer: (options) =>
      whileAlive(
        broker.consumer({
          ...options,
          clientId: process,
          // All processes run on one host here; in production the host name tells them apart.
          ...(options.groupInstanceId === undefined ? {} : { groupInstanceId: `${options.groupInstanceId}@${machine}` })
        })
      ).pipe(
        Effect.map((session) => noted(session, history, process, options.groupId)),
        Effect.flatMap((session) => (sabotage === undefined ? Effect.succeed(session) : sabotaged(session, sabotage)))
      ),
    producer: (options) =>
      Effect.map(whileAlive(broker.producer({ ...options, clientId: process })), (producer) => ({
        ...producer,
        ...publisher(producer)
      })),
    transactionalProducer: (options) =>
      Effect.map(whileAlive(broker.transactionalProducer({ ...options, clientId: process })), (producer) => ({
        ...producer,
        transaction: (use) => producer.transaction((transaction) => use({ ...transaction, ...publisher(transaction) }))
      })),
    admin: whileAlive(broker.admin)
  }
}

const killed = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "this process was killed" })

type Publisher = Pick<Broker.Producer, "send" | "sendEach">

/** Records the copies among the published records. */
const watched = (producer: Publisher, history: History, process: string): Publisher => {
  const note = (record: ConsumerRecord.ProducerRecord): number | undefined => {
    const copy = Copies.read(record)
    if (copy === undefined) return undefined
    const number = history.entries.length
    history.add({ _tag: "Sent", process, number, copy })
    return number
  }
  const failed = (number: number | undefined) => {
    if (number !== undefined) history.add({ _tag: "SendFailed", process, number })
  }
  return {
    send: (record) =>
      Effect.suspend(() => {
        const number = note(record)
        return Effect.onError(producer.send(record), () => Effect.sync(() => failed(number)))
      }),
    sendEach: (records, onAnswer) =>
      Effect.suspend(() => {
        const open = new Map(records.map((record, index) => [index, note(record)]))
        const sent = producer.sendEach(records, (index, answer) => {
          if (Result.isFailure(answer)) failed(open.get(index))
          open.delete(index)
          onAnswer(index, answer)
        })
        return Effect.onError(sent, () => Effect.sync(() => open.forEach(failed)))
      })
  }
}

const sabotagedPublisher = (producer: Publisher, copies: NonNullable<Sabotage["copies"]>): Publisher => {
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

const noted = (
  session: Broker.ConsumerSession,
  history: History,
  process: string,
  groupId: string
): Broker.ConsumerSession => ({
  ...session,
  commit: (offsets) =>
    Effect.suspend(() => {
      history.add({ _tag: "CommitSent", process, groupId })
      return Effect.onExit(session.commit(offsets), (exit) =>
        Effect.sync(() =>
          history.add({ _tag: exit._tag === "Success" ? "CommitAccepted" : "CommitFailed", process, groupId })
        )
      )
    })
})

const sabotaged = Effect.fnUntraced(function* (session: Broker.ConsumerSession, sabotage: Sabotage) {
  const { commit, seek, resume, events } = sabotage
  const changed: Broker.ConsumerSession = {
    ...session,
    ...(commit === undefined ? {} : { commit: (offsets) => session.commit(commit(offsets)) }),
    ...(seek === undefined ? {} : { seek: (partition, offset) => session.seek(partition, seek(offset)) }),
    ...(resume === undefined ? {} : { resume: () => Effect.void })
  }
  if (events === undefined) return changed
  // Unbounded, since its reader takes every event at once.
  const queue = yield* Queue.unbounded<Broker.ConsumerEvent, BrokerError.BrokerError>()
  const rewrite = events()
  yield* Queue.takeAll(session.events).pipe(
    Effect.flatMap((taken) => Effect.forEach(taken, rewrite)),
    Effect.flatMap((rewritten) => Queue.offerAll(queue, rewritten.flat())),
    Effect.forever,
    Effect.onError((cause) => Queue.failCause(queue, cause)),
    Effect.forkScoped
  )
  return { ...changed, events: queue }
})
