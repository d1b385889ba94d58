/**
 * One run of a binding, from a start until its stop has ended: its supervised consumers and its dead letter strategy.
 */
import { type Context, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import type { DeadLetterCommands } from "../deadLetters/commands.ts"
import * as DeadLetterStrategy from "../deadLetters/strategy.ts"
import type { OnEvent } from "../deadLetters/strategyEvents.ts"
import { type ConsumerOptions, subscriptions } from "../group/consumer.ts"
import type { StopLimits } from "../group/stopLimits.ts"
import * as Supervisor from "../group/supervisor.ts"
import * as BindingAnnotations from "../settings/bindingAnnotations.ts"
import { budgetMillis } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"

export interface Run {
  readonly scope: Scope.Closeable
  /** Done once the run has stopped, left the group and closed its sessions. */
  readonly ended: Deferred.Deferred<void>
}

export interface RunOptions<R> {
  /** The options that all consumers of the binding share. */
  readonly consumer: Omit<ConsumerOptions<R>, "index" | "subscription" | "onDeadLetter">
  readonly deadLetters: DeadLetterCommands
  readonly services: Context.Context<R>
  readonly onStrategy: (strategy: DeadLetterStrategy.Strategy) => void
  readonly onStatus: (index: number, status: Supervisor.ConsumerStatus) => void
}

export const make: Effect.Effect<Run> = Effect.map(Scope.make(), (scope) => ({ scope, ended: Deferred.makeUnsafe() }))

/** Starts the dead letter strategy and one supervised consumer per subscription, in the scope of the run. */
export const start = Effect.fnUntraced(function* <R>(run: Run, options: RunOptions<R>): Effect.fn.Return<void> {
  const { consumer, services, onStatus } = options
  const onDeadLetter = yield* runStrategy(options).pipe(
    Scope.provide(run.scope),
    Effect.provideContext(services),
    Effect.annotateLogs(BindingAnnotations.of(consumer.definition))
  )
  for (const [index, subscription] of subscriptions(consumer.definition).entries()) {
    const supervised = Supervisor.supervise({ ...consumer, index, subscription, onDeadLetter }, (status) =>
      onStatus(index, status)
    )
    const annotated = Effect.annotateLogs(Effect.provideContext(supervised, services), {
      ...BindingAnnotations.of(consumer.definition),
      consumerInstance: `${consumer.hostname}-${index}`
    })
    yield* Effect.forkIn(annotated, run.scope)
  }
})

/** Runs the dead letter strategy of the binding. Answers the callback for stored dead letters if the strategy wants them. */
const runStrategy = <R>({ consumer, deadLetters, onStrategy }: RunOptions<R>) => {
  const { definition, broker, hub, failures } = consumer
  const { deadLetter, deadLetterTopic, groupId, adopts, maxBufferedBytes } = definition
  if (deadLetter._tag === "StoreOnly") return Effect.succeed(undefined)
  const onEvent: OnEvent = (event) => hub.emit({ ...BindingKey.onEvent(definition), ...event })
  return Effect.map(
    DeadLetterStrategy.run({
      ...{ deadLetter, broker, groupId, adopts, deadLetterTopic, onEvent },
      ...{ replays: deadLetters, failures: failures.strategy, maxBufferedBytes },
      handlerTimeoutMillis: budgetMillis(definition)
    }),
    (strategy) => {
      onStrategy(strategy)
      return deadLetter._tag === "AlertAndStore" ? strategy.onStored : undefined
    }
  )
}

/** Leaves the group and closes the sessions. Runs outside of the binding's scope, which may already be closing. A session that takes longer than the limit closes in the background. */
export const close = Effect.fnUntraced(function* ({ scope }: Run, limits: StopLimits) {
  const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true })
  yield* awaitAtMost(Fiber.await(closing), limits.leave())
})
