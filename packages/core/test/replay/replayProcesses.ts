/** Processes of one group that replay one dead letter topic on a cluster in memory. A process is a client id, which can be killed or cut off. */
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect, Fiber } from "effect"
import { advance, append, text, until } from "../../../../test/scenarios/bus.ts"
import type { Broker } from "../../src/Broker.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as Tiers from "../../src/internal/retry/tiers.ts"
import * as TopicName from "../../src/TopicName.ts"

export type Service = Broker["Service"]
type Memory = Pick<MemoryBroker.MemoryBroker["Service"], "broker" | "kill">

/** A transaction of a process, before it publishes anything (`begun`), or before its end (`sent`). */
export interface Moment {
  readonly phase: "begun" | "sent"
  /** How many transactions of the process are over. */
  readonly done: number
  /** Ends the process: nothing that it sends arrives from now on. */
  readonly kill: Effect.Effect<void>
  /** Suspends the process. */
  readonly freeze: (seconds: number) => Effect.Effect<void>
}

/** The fate of a process in its transactions. */
export type Around = (moment: Moment) => Effect.Effect<void>

/** The clients of one process. While it is suspended, nothing that it does arrives. */
export const clientsOf = ({ broker, kill: killClient }: Memory, clientId: string, around: Around): Service => {
  const kill = killClient(clientId)
  let done = 0
  let frozenUntil = 0
  const thawed = Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sleep(Math.max(0, frozenUntil - now)))
  const freeze = (seconds: number) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.suspend(() => {
        frozenUntil = now + seconds * 1_000
        return thawed
      })
    )
  return {
    ...broker,
    producer: (options) =>
      Effect.map(broker.producer({ ...options, clientId }), (producer) => ({
        ...producer,
        send: (record) => Effect.andThen(thawed, producer.send(record))
      })),
    reader: (options) =>
      Effect.map(broker.reader({ ...options, clientId }), ({ read }) => ({
        read: (position) => Effect.andThen(thawed, read(position))
      })),
    transactionalProducer: (options) =>
      Effect.map(Effect.andThen(thawed, broker.transactionalProducer({ ...options, clientId })), (producer) => ({
        transaction: (use) => {
          const happens = (phase: Moment["phase"]) => Effect.suspend(() => around({ phase, done, kill, freeze }))
          return producer
            .transaction((transaction) =>
              happens("begun").pipe(
                Effect.andThen(use(transaction)),
                Effect.tap(() => happens("sent"))
              )
            )
            .pipe(Effect.tap(() => Effect.sync(() => done++)))
        }
      }))
  }
}

export const processOf = Effect.fnUntraced(function* (
  hostname: string,
  around: Around = () => Effect.void,
  changes = {}
) {
  const memory = yield* MemoryBroker.MemoryBroker
  return Replay.make({
    broker: { ...clientsOf(memory, hostname, around), ...changes },
    ...{ groupId: "billing", adopts: [], sourceTopic: "orders", deadLetterTopic: "orders.DLT", hostname },
    ...{ maxReplays: 3, maxBufferedBytes: 16_777_216, ownsPosition: true },
    tiers: Tiers.make({ topic: "orders", groupId: "billing" }, TopicName.standard, [])
  })
})

export const letters = 600
export const values = Array.from({ length: letters }, (_, index) => String(index))

/** A dead letter topic with so many records; six transactions replay them. */
export const setUp = Effect.fnUntraced(function* (journal?: ReadonlyArray<readonly [string, string]>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.DLT")
  if (journal !== undefined) yield* memory.createTopic("orders.DLT.replays", { config: new Map(journal) })
  yield* append("orders.DLT", 0, values)
  return memory
})

/** The values that readers of committed records see, sorted. */
export const copies = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  const found = (yield* memory.log("orders", 0)).map(({ value }) => text(value) ?? "")
  return found.sort((a, b) => Number(a) - Number(b))
})

export const all = Number.POSITIVE_INFINITY
export const slow =
  (seconds: number): Around =>
  ({ phase }) =>
    phase === "sent" ? Effect.sleep(`${seconds} seconds`) : Effect.void

/** The process is killed while its third transaction is open. */
export const killed: Around = ({ phase, done, kill }) =>
  phase === "begun" ? Effect.void : done < 2 ? Effect.sleep("1 second") : Effect.andThen(kill, Effect.never)

export const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkDetach(effect, { startImmediately: true })
const isOver = (fiber: Fiber.Fiber<unknown, unknown>) => () => fiber.pollUnsafe() !== undefined
export const joined = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.andThen(until(isOver(fiber), "1 second"), Fiber.join(fiber))

/** A journal as older versions make it: the times of its records are those of their writers. */
export const older: ReadonlyArray<readonly [string, string]> = [["cleanup.policy", "compact"]]

/** Lets so many seconds pass, in steps that no timer of a replay misses. */
export const pass = (seconds: number): Effect.Effect<void> =>
  Effect.repeat(advance("250 millis"), { times: seconds * 4 - 1 })

/** Runs something to its end, and answers how many seconds it took. */
export const timed = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const began = yield* Clock.currentTimeMillis
  const fiber = yield* fork(effect)
  yield* until(isOver(fiber), "250 millis")
  return { result: yield* Fiber.join(fiber), seconds: ((yield* Clock.currentTimeMillis) - began) / 1_000 }
})
