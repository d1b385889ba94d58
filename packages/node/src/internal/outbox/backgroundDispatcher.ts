/** A dispatcher that starts in the background of a bus, as often as it takes: neither database nor cluster need to be there when the bus starts. */
import { Adapter, Broker, Clusters, Defaults, EventBusError, LogLine, UserFunction } from "@eventbus/core"
import { Outbox, OutboxHealth, OutboxSchema } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { BusOutboxState, type OutboxReason } from "../../BusOutbox.ts"
import type { OutboxDispatcherOptions } from "../../OutboxDispatcherOptions.ts"
import { producerOptions } from "../publishing.ts"
import * as Database from "./database.ts"
import * as DispatcherChecks from "./dispatcherChecks.ts"

const firstPauseMillis = 1_000
const longestPauseMillis = 10_000

/** Between two looks at the health of the outbox, each of which reads the table. */
const lookEvery = "5 seconds"

/** Building it fails with `ConfigurationValidation`, and waits for nothing. Its end lets events on their way be acknowledged. */
export const layer = (
  options: OutboxDispatcherOptions
): Layer.Layer<BusOutboxState, EventBusError.ConfigurationValidation, Broker.Broker> =>
  Layer.effect(
    BusOutboxState,
    Effect.gen(function* () {
      yield* DispatcherChecks.check(options)
      const { cluster = Defaults.binding.cluster, database, producer = {} } = options
      const broker = yield* Effect.mapError(Clusters.get(cluster), ({ known }) =>
        invalid("cluster", JSON.stringify(cluster), `one of the clusters ${known.join(", ")}`)
      )
      yield* Effect.mapError(Adapter.checkOptions("producer", producerOptions(producer)), ({ detail }) =>
        invalid("producer", "other options", detail)
      )
      // A function may wait for a secret, so it is asked in the background.
      if (typeof database !== "function") yield* Effect.mapError(Database.clientOf(database), unusable)
      let reason: OutboxReason | undefined = {
        type: "OutboxDown",
        message: "The outbox has not reached its database yet"
      }
      const keep = (now: OutboxReason | undefined) => {
        reason = now
      }
      yield* Effect.forkScoped(again(life(options, broker, keep), keep))
      return { reason: () => reason }
    })
  )

const invalid = (option: string, found: string, allowed: string) =>
  new EventBusError.ConfigurationValidation({ issues: [{ path: `outbox.${option}`, found, allowed }] })

const unusable = (error: unknown) =>
  error instanceof Database.UnusableDatabase
    ? invalid("database", error.found, error.allowed)
    : invalid("database", "something else", String(error))

type Keep = (reason: OutboxReason | undefined) => void

/** Runs until it is interrupted: each end of a life, whatever its cause, is logged and shown, and another life begins. */
const again = Effect.fnUntraced(function* (run: Effect.Effect<never, unknown>, keep: Keep) {
  for (let pauseMillis = firstPauseMillis; ; pauseMillis = Math.min(2 * pauseMillis, longestPauseMillis)) {
    const exit = yield* Effect.exit(run)
    const words = Exit.isFailure(exit) ? wordsOf(exit.cause) : "it ended"
    keep({ type: "OutboxDown", message: `The outbox does not run: ${words}` })
    yield* LogLine.warning(
      `outbox: the dispatcher of the bus does not run, trying again in ${pauseMillis} ms: ${words}`
    )
    yield* Effect.sleep(pauseMillis)
  }
})

const wordsOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : UserFunction.kindOf(error)
}

/** One life of the dispatcher: from its connections to their end. */
const life = (options: OutboxDispatcherOptions, broker: Broker.Broker["Service"], keep: Keep) =>
  Effect.scoped(
    Effect.gen(function* () {
      const client = yield* Database.clientOf(options.database)
      const context = yield* Layer.build(
        dispatching(options).pipe(Layer.provide(client), Layer.provide(Layer.succeed(Broker.Broker, broker)))
      )
      const { check } = Context.get(context, OutboxHealth.OutboxHealth)
      return yield* Effect.forever(
        Effect.andThen(
          Effect.map(check, (report) => keep(reasonOf(report))),
          Effect.sleep(lookEvery)
        )
      )
    })
  )

const reasonOf = ({ status, detail }: OutboxHealth.HealthReport): OutboxReason | undefined => {
  if (status === "up") return undefined
  return { type: status === "down" ? "OutboxDown" : "OutboxDegraded", message: `The outbox is ${status}: ${detail}` }
}

const dispatching = (options: OutboxDispatcherOptions) => {
  const {
    table,
    interval = 1_000,
    purge,
    drainTimeout,
    lease,
    maxAttempts,
    onDone = "delete"
  } = DispatcherChecks.plain(options)
  const { missingTopics, timestamp, producer = {}, migrate = false } = options
  const named = table === undefined ? {} : { table }
  return Outbox.orderedNodes({
    ...KafkaRelay.orderedSettings,
    ...named,
    ...{ interval, onDone },
    ...(purge !== undefined && { purge }),
    ...(drainTimeout !== undefined && { drainTimeout }),
    ...(lease !== undefined && { leases: { lease } }),
    ...(maxAttempts !== undefined && { maxAttempts })
  }).pipe(
    Layer.provide(
      KafkaRelay.layer({
        producer: producerOptions(producer),
        ...(missingTopics !== undefined && { missingTopics }),
        ...(timestamp !== undefined && { timestamp })
      })
    ),
    Layer.provide(migrate ? Layer.effectDiscard(OutboxSchema.migrate(named)) : Layer.empty)
  )
}
