/**
 * One run of a binding, from a start until its stop has ended: its supervised consumers and its dead letter strategy.
 */
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import type { LettersOfTopics } from "../deadLetters/lettersOfTopics.ts"
import * as DeadLetterStrategy from "../deadLetters/strategy.ts"
import type { OnEvent } from "../deadLetters/strategyEvents.ts"
import { type ConsumerOptions, subscriptions } from "../group/consumer.ts"
import type { StopLimits } from "../group/stopLimits.ts"
import * as Supervisor from "../group/supervisor.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"
import * as BindingAnnotations from "../settings/bindingAnnotations.ts"
import { type BindingDefinition, budgetMillis } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Sources from "../settings/sources.ts"

export interface Run {
  readonly scope: Scope.Closeable
  /** Done once the run has stopped, left the group and closed its sessions. */
  readonly ended: Deferred.Deferred<void>
}

export interface RunOptions<R> {
  /** The options that all consumers of the binding share. */
  readonly consumer: Omit<ConsumerOptions<R>, "index" | "subscription" | "onDeadLetter">
  readonly deadLetters: LettersOfTopics
  readonly services: Context.Context<R>
  /** Told of the strategies that run: one, or one for each topic. */
  readonly onStrategies: (strategies: ReadonlyArray<DeadLetterStrategy.Strategy>) => void
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

/** Runs the dead letter strategy of the binding, for each of its dead letter topics. Answers the callback for stored dead letters if the strategy wants them. */
const runStrategy = <R>({ consumer, deadLetters, onStrategies }: RunOptions<R>) => {
  const { definition, broker, hub, failures } = consumer
  const { deadLetter, groupId, adopts, maxBufferedBytes } = definition
  if (deadLetter._tag === "StoreOnly") return Effect.succeed(undefined)
  const onEvent: OnEvent = (event) => hub.emit({ ...BindingKey.onEvent(definition), ...event })
  const ofSource = ({ deadLetterTopic }: BindingDefinition<R>, at: number) =>
    DeadLetterStrategy.run({
      ...{ deadLetter, broker, groupId, adopts, deadLetterTopic, onEvent },
      ...{ replays: deadLetters.each[at]!, maxBufferedBytes },
      failures: at === 0 ? failures.strategy : about(failures.strategy, deadLetterTopic),
      handlerTimeoutMillis: budgetMillis(definition)
    })
  // Alerts are sent by this process, whatever topic their letters are stored in.
  const sources = deadLetter._tag === "AlertAndStore" ? [definition] : Sources.of(definition)
  return Effect.map(Effect.forEach(sources, ofSource), (strategies) => {
    onStrategies(strategies)
    return deadLetter._tag === "AlertAndStore" ? strategies[0]!.onStored : undefined
  })
}

/** A failure of one topic's strategy ends by itself. */
const about = (
  { failed, worked }: OngoingFailures,
  deadLetterTopic: string
): Pick<OngoingFailures, "failed" | "worked"> => ({
  failed: (what, error) => failed(`${what} (${deadLetterTopic})`, error),
  worked: (what) => worked(`${what} (${deadLetterTopic})`)
})

/** Leaves the group and closes the sessions. Runs outside of the binding's scope, which may already be closing. A session that takes longer than the limit closes in the background. */
export const close = Effect.fnUntraced(function* ({ scope }: Run, limits: StopLimits) {
  const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true })
  yield* awaitAtMost(Fiber.await(closing), limits.leave())
})
