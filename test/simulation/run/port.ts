/**
 * The Broker port of one simulated process. It names the clients, so that they can be killed, and records commits and copies. Bugs can be planted in it.
 */
import { type Broker, BrokerError, type ConsumerRecord } from "@eventbus/core"
import { Effect, Result } from "effect"
import * as Copies from "../history/copies.ts"
import type { History } from "../history/History.ts"
import { onMachine } from "../history/Members.ts"
import * as Cluster from "./cluster.ts"
import {
  type Publisher,
  type Sabotage,
  sabotaged,
  sabotagedPublisher,
  sabotagedTransactions,
  withoutClaims
} from "./sabotagedPort.ts"

export const ofProcess = (
  memory: Cluster.Memory,
  history: History,
  process: string,
  sabotage: Sabotage | undefined
): Broker.Broker["Service"] => {
  const { broker } = memory
  const machine = process.slice(0, process.indexOf("."))
  const whileAlive = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.suspend(
      (): Effect.Effect<A, E | BrokerError.BrokerError, R> => (history.isKilled(process) ? Effect.fail(killed) : effect)
    )
  const publisher = (producer: Publisher, kind: "Sent" | "Replayed"): Publisher => {
    const observed = watched(producer, history, process, kind)
    const change = kind === "Sent" ? sabotage?.copies : sabotage?.replays
    const changed = change === undefined ? observed : sabotagedPublisher(observed, change)
    return sabotage?.claims === undefined ? changed : withoutClaims(changed, sabotage.claims)
  }
  return {
    consumer: (options) =>
      whileAlive(
        broker.consumer({
          ...options,
          clientId: process,
          ...(options.groupInstanceId === undefined
            ? {}
            : { groupInstanceId: `${options.groupInstanceId}${onMachine}${machine}` })
        })
      ).pipe(
        Effect.map((session) => noted(session, history, process, options.groupId)),
        Effect.flatMap((session) =>
          // The groups of dead letter topics read what the bindings do not.
          sabotage === undefined || options.groupId.includes(".dlt")
            ? Effect.succeed(session)
            : sabotaged(broker, session, sabotage)
        )
      ),
    producer: (options) =>
      Effect.map(whileAlive(broker.producer({ ...options, clientId: process })), (producer) => ({
        ...producer,
        ...publisher(producer, "Sent")
      })),
    transactionalProducer: (options) =>
      whileAlive(broker.transactionalProducer({ ...options, clientId: process })).pipe(
        Effect.flatMap((producer) =>
          sabotage === undefined || isReplay(options)
            ? Effect.succeed(producer)
            : sabotagedTransactions(broker, producer, options, sabotage)
        ),
        Effect.map((producer) => ({
          ...producer,
          transaction: (use) =>
            producer.transaction((transaction) =>
              use({ ...transaction, ...publisher(transaction, isReplay(options) ? "Replayed" : "Sent") })
            )
        }))
      ),
    reader: (options) => whileAlive(broker.reader({ ...options, clientId: process })),
    admin: Effect.map(whileAlive(broker.admin), (admin) => noting(memory, history, admin))
  }
}

/** Notes which records were readable before they are deleted. */
const noting = (memory: Cluster.Memory, history: History, admin: Broker.Admin): Broker.Admin => ({
  ...admin,
  deleteRecords: (topic, partitions) =>
    Effect.andThen(
      Effect.forEach(
        partitions,
        ({ partition, before }) =>
          Effect.map(memory.log(topic, partition), (log) => {
            Cluster.noteReadable(history.entries, `${topic}/${partition}`, log)
            history.add({ _tag: "Truncated", partition: `${topic}/${partition}`, before })
          }),
        { discard: true }
      ),
      admin.deleteRecords(topic, partitions)
    )
})

const killed = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "this process was killed" })

/** By the transactional id: the first version's, which a replay has for one release, or the newer one. */
const isReplay = ({ transactionalId }: Broker.TransactionalProducerOptions): boolean =>
  transactionalId.includes(".dlt.replay.") || transactionalId.endsWith("/replay")

/** Records the copies among the published records. */
const watched = (producer: Publisher, history: History, process: string, kind: "Sent" | "Replayed"): Publisher => {
  const note = (record: ConsumerRecord.ProducerRecord): number | undefined => {
    const copy = Copies.read(record)
    if (copy === undefined) return undefined
    const number = history.entries.length
    history.add({ _tag: kind, process, number, copy })
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
