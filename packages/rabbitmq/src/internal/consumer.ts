/** Runs a consumer: a channel that is opened again whenever it ends, and fibers that call the handler. */
import * as LogLine from "@eventbus/core/LogLine"
import * as Ranges from "@eventbus/core/Ranges"
import * as UserFunction from "@eventbus/core/UserFunction"
import type { ConsumerObserver } from "@eventbus/messaging/MessageBroker"
import type { MessageConsumer } from "@eventbus/messaging/MessageConsumer"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { RabbitMqError } from "../RabbitMqError.ts"
import { backoff } from "./backoff.ts"
import type { Connection } from "./connection.ts"
import { makeConsumerLines } from "./consumerLines.ts"
import { untilDetached } from "./detachment.ts"
import * as Failures from "./failures.ts"
import { Inbox } from "./inbox.ts"
import { keepRunning } from "./keepRunning.ts"
import { type ConsumerContext, handleBatch, handleOne } from "./messageHandling.ts"
import type { Names } from "./names.ts"
import type { Publisher } from "./publisher.ts"
import { openSession, type Reading, type Session } from "./session.ts"
import type { Settings } from "./settings.ts"
import { declareGroup, onChannel } from "./topology.ts"

/** Shared by all consumers of a broker. */
export interface BrokerContext {
  readonly settings: Settings
  readonly names: Names
  readonly connection: Connection
  readonly publisher: Publisher
}

/** How long closing a channel may take. */
const closeMillis = 2_000

const defaultBatch = 500
const maxPrefetch = 65_535

/** Starts the consumer, and stops it with the scope. Fails for what no waiting cures, where the first declaration shows it. */
export const startConsumer = Effect.fnUntraced(function* <T, E, R>(
  broker: BrokerContext,
  consumer: MessageConsumer<T, E, R>,
  plans: ReadonlyArray<Reading<unknown>>,
  observer: ConsumerObserver
): Effect.fn.Return<void, RabbitMqError, R | Scope.Scope> {
  const { settings, connection } = broker
  const inbox = new Inbox()
  const stopping = yield* Deferred.make<void>()
  const ready = yield* Deferred.make<void, RabbitMqError>()
  const concurrency = consumer.concurrency ?? settings.concurrency
  const current: Current = { session: undefined }
  const retry = consumer.retry ?? settings.retry
  const lines = yield* makeConsumerLines(consumer, plans, retry.maxAttempts)
  const context: ConsumerContext<T, E, R> = {
    ...{ consumer, observer, stopping, retry, lines, names: broker.names, publisher: broker.publisher },
    deliveryLimit: settings.deliveryLimit,
    redeclare: Effect.ignore(Effect.flatMap(connection.model, (model) => declare(broker, model, plans)))
  }
  const start = Effect.gen(function* () {
    const sessions = yield* Effect.forkDetach(
      keepRunning(`The consumer '${consumer.name}'`, keepConsuming(broker, context, plans, { inbox, ready, current }))
    )
    const workers = yield* Effect.forEach(Array.from({ length: concurrency }), () =>
      Effect.forkDetach(
        keepRunning(
          `A handler loop of consumer '${consumer.name}'`,
          UserFunction.checkSteps(work(context, inbox, batchOf(consumer)))
        )
      )
    )
    return { sessions, workers }
  })
  yield* Effect.acquireRelease(start, ({ sessions, workers }) =>
    Effect.gen(function* () {
      yield* lines.stopping
      yield* Deferred.succeed(stopping, undefined)
      yield* Fiber.interrupt(sessions)
      inbox.close()
      const { session } = current
      if (session !== undefined) yield* within(session.stopDeliveries)
      yield* endWorkers(consumer, workers)
      if (session !== undefined) yield* within(session.close)
      yield* lines.stopped
    })
  )
  if (connection.state.model !== undefined) yield* Deferred.await(ready)
})

/** The channel that is open now. */
interface Current {
  session: Session | undefined
}

const within = (effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.timeoutOrElse(effect, { duration: closeMillis, orElse: () => Effect.void })

const batchOf = <T, E, R>({ handler }: MessageConsumer<T, E, R>): number =>
  handler._tag === "Batch" ? (handler.maxMessages ?? defaultBatch) : 1

/** Handles messages until the inbox is closed. */
const work = <T, E, R>(context: ConsumerContext<T, E, R>, inbox: Inbox, batch: number): Effect.Effect<void, never, R> =>
  Effect.gen(function* () {
    const isBatch = context.consumer.handler._tag === "Batch"
    while (true) {
      const delivery = yield* inbox.take
      if (delivery === undefined) return
      if (isBatch) inbox.putBack(yield* handleBatch(context, [delivery, ...inbox.more(delivery, batch - 1)]))
      else yield* handleOne(context, delivery)
    }
  })

/** Waits for the handlers that run, then interrupts them. One that resists is left behind: its message comes again. */
const endWorkers = Effect.fnUntraced(function* (
  { name, shutdownTimeout }: Pick<MessageConsumer<unknown>, "name" | "shutdownTimeout">,
  workers: ReadonlyArray<Fiber.Fiber<unknown, unknown>>
) {
  const ended = (millis: number) =>
    Effect.timeoutOrElse(Effect.as(Fiber.awaitAll(workers), true), {
      duration: millis,
      orElse: () => Effect.succeed(false)
    })
  const limit = Ranges.millisOf(shutdownTimeout ?? 30_000)
  if (yield* ended(limit)) return
  yield* LogLine.warning(
    `Consumer '${name}': handlers still run after ${limit} ms and are interrupted; their messages come again`
  )
  for (const worker of workers) worker.interruptUnsafe()
  if (!(yield* ended(1_000)))
    yield* LogLine.error(`Consumer '${name}': handlers resist their interruption: nobody waits for them any longer`)
})

const declare = (
  { names, settings }: BrokerContext,
  model: Parameters<typeof onChannel>[0],
  plans: ReadonlyArray<Reading<unknown>>
): Effect.Effect<void, RabbitMqError> =>
  Effect.tryPromise({
    try: () =>
      onChannel(model, async (channel) => {
        for (const plan of plans) await declareGroup(channel, names, settings, plan)
      }),
    catch: Failures.ofChannel
  })

interface Life {
  readonly inbox: Inbox
  readonly ready: Deferred.Deferred<void, RabbitMqError>
  readonly current: Current
}

/** Declares, consumes, and begins again when the channel ends. */
const keepConsuming = Effect.fnUntraced(function* <T, E, R>(
  broker: BrokerContext,
  { consumer, lines }: ConsumerContext<T, E, R>,
  plans: ReadonlyArray<Reading<unknown>>,
  { inbox, ready, current }: Life
) {
  const prefetch = prefetchOf(broker.settings, consumer)
  for (let failures = 1; ; failures++) {
    const model = yield* broker.connection.model
    const run = Effect.gen(function* () {
      yield* declare(broker, model, plans)
      const session = yield* Effect.tryPromise({ try: () => openSession(model), catch: Failures.ofChannel })
      current.session = session
      for (const plan of plans) {
        yield* Effect.tryPromise({
          try: () => session.consume(plan, prefetch, (delivery) => inbox.add(delivery)),
          catch: Failures.ofChannel
        })
      }
      yield* lines.started
      yield* Deferred.succeed(ready, undefined)
      failures = 0
      return yield* Effect.raceFirst(Deferred.await(session.ended), untilDetached(model, session, plans))
    })
    const failure = yield* Effect.flip(run)
    if (!failure.retryable) yield* Deferred.fail(ready, failure)
    // The failure may pass: the consumer joins in the background.
    yield* Deferred.succeed(ready, undefined)
    yield* LogLine.warning(`Consumer '${consumer.name}': ${failure.message} It starts again.`)
    if (current.session !== undefined) yield* within(current.session.close)
    current.session = undefined
    yield* backoff(Math.max(failures, 1))
  }
})

/** Enough for all handlers to be busy, and no more than the setting where that is enough. */
const prefetchOf = <T, E, R>({ prefetch, concurrency }: Settings, consumer: MessageConsumer<T, E, R>): number =>
  Math.min(maxPrefetch, Math.max(prefetch, (consumer.concurrency ?? concurrency) * batchOf(consumer)))
