/**
 * The Broker port of one simulated process: gives its clients names by which they can be killed, and notes its commits. Bugs can be planted in it.
 */
import { type Broker, BrokerError } from "@eventbus/core"
import { Effect, Queue } from "effect"
import * as Copies from "./copies.ts"
import type { History } from "./History.ts"

/** What a planted bug does to a session. Each part stands alone; what is left out is as it should be. */
export interface Sabotage {
  readonly commit?: (offsets: ReadonlyArray<Broker.OffsetCommit>) => ReadonlyArray<Broker.OffsetCommit>
  readonly seek?: (offset: bigint) => bigint
  readonly resume?: "ignored"
  /** Rewrites what the session reports, event by event. */
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
  return {
    consumer: (options) =>
      whileAlive(
        broker.consumer({
          ...options,
          clientId: process,
          // Every process here runs on the same host; on a real machine the host name tells them apart.
          ...(options.groupInstanceId === undefined ? {} : { groupInstanceId: `${options.groupInstanceId}@${machine}` })
        })
      ).pipe(
        Effect.map((session) => noted(session, history, process, options.groupId)),
        Effect.flatMap((session) => (sabotage === undefined ? Effect.succeed(session) : sabotaged(session, sabotage)))
      ),
    producer: (options) =>
      Effect.map(whileAlive(broker.producer({ ...options, clientId: process })), (producer) => ({
        ...producer,
        send: watched(producer, history, process)
      })),
    transactionalProducer: (options) =>
      Effect.map(whileAlive(broker.transactionalProducer({ ...options, clientId: process })), (producer) => ({
        ...producer,
        transaction: (use) =>
          producer.transaction((transaction) => use({ ...transaction, send: watched(transaction, history, process) }))
      })),
    admin: whileAlive(broker.admin)
  }
}

const killed = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "this process was killed" })

/** Notes the copies among what is sent: the connector sends those one by one. */
const watched =
  ({ send }: Pick<Broker.Producer, "send">, history: History, process: string): Broker.Producer["send"] =>
  (record) =>
    Effect.suspend(() => {
      const copy = Copies.read(record)
      if (copy === undefined) return send(record)
      const number = history.entries.length
      history.add({ _tag: "Sent", process, number, copy })
      return Effect.onError(send(record), () => Effect.sync(() => history.add({ _tag: "SendFailed", process, number })))
    })

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
  // Unbounded, since whoever takes from it does so at once.
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
