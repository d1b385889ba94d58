/**
 * Calls of the handler within the user's layer for rehearsals, and with nothing else of the program around them: no service of the binding, no tracer, no interceptor, and a
 * registry of metrics of their own. Log lines say that they are of a rehearsal.
 */
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import type { Producer } from "../../Broker.ts"
import { DryRunLayerFailed } from "../../Rehearsal.ts"
import * as UserFunction from "../../UserFunction.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as Failures from "../failure/failure.ts"
import { failureText } from "../failure/failureText.ts"
import * as BindingAnnotations from "../settings/bindingAnnotations.ts"
import { type BindingDefinition, budgetMillis } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import type { RehearsedCall } from "../settings/rehearsedHandler.ts"

/** Longest time of a call, however much a delivery of the binding may take. */
const longestCallMillis = 30_000

/** Longest time that the layer may take to be built, and to be released. */
const layerMillis = 30_000

export interface DryRun<R> {
  /** Calls the handler in a fiber of its own. Undefined when it had not ended after `callMillis`; it is interrupted then, and nobody waits for one that resists. */
  readonly call: (handler: RehearsedCall<R>) => Effect.Effect<Exit.Exit<unknown, unknown> | undefined>
  readonly callMillis: number
  /** Records that handlers have given to their transactions. */
  readonly published: () => number
}

/** Builds the layer anew. Undefined where the binding has none. The scope releases it. */
export const open = Effect.fnUntraced(function* <R>(
  definition: BindingDefinition<R>,
  services: Context.Context<R>
): Effect.fn.Return<DryRun<R> | undefined, DryRunLayerFailed, Scope.Scope> {
  const { dryRun } = definition
  if (dryRun === undefined) return undefined
  const provided = yield* build(definition, dryRun, services)
  // By its type, `Binding.rehearsable` takes only a layer that provides what the handler requires.
  const fork = Effect.runForkWith(Context.merge(yield* surroundings(definition), provided) as Context.Context<R>)
  const callMillis = Math.min(budgetMillis(definition), longestCallMillis)
  const { producer, published } = pretended()
  return {
    callMillis,
    published,
    call: (handler) =>
      Effect.suspend(() => {
        const fiber = fork(UserFunction.callEffect("the handler", () => handler(producer)))
        const ended = fiber.pollUnsafe()
        return ended === undefined ? endOf(fiber, callMillis) : Effect.succeed(ended)
      })
  }
})

const endOf = (fiber: Fiber.Fiber<unknown, unknown>, millis: number) =>
  Effect.timeoutOption(Fiber.await(fiber), millis).pipe(
    Effect.map((ended) => {
      if (Option.isSome(ended)) return ended.value
      fiber.interruptUnsafe()
      return undefined
    }),
    Effect.onInterrupt(() => Effect.sync(() => fiber.interruptUnsafe()))
  )

/** The layer is the user's code, too: it may fail, throw, or never be built. */
const build = Effect.fnUntraced(function* <R>(
  definition: BindingDefinition<R>,
  dryRun: Layer.Layer<never, unknown, R>,
  services: Context.Context<R>
) {
  // A layer that the program has built already is not shared: what a rehearsal changes in it, the program would see.
  const memo = Layer.makeMemoMapUnsafe()
  const scope = yield* Effect.acquireRelease(Scope.make(), (open) =>
    awaitAtMost(Scope.close(open, Exit.void), layerMillis)
  )
  const building = UserFunction.callIsolated("the layer for rehearsals", () =>
    Effect.provideContext(Layer.buildWithMemoMap(dryRun, memo, scope), services)
  )
  const failed = (reason: string) => new DryRunLayerFailed({ binding: BindingKey.label(definition), reason })
  const built = yield* awaitAtMost(Effect.exit(building), layerMillis)
  if (Option.isNone(built)) return yield* failed(`it was not built within ${layerMillis / 1_000} seconds`)
  const exit = built.value
  if (Exit.isSuccess(exit)) return exit.value
  const failure = Failures.fromCause(exit.cause)
  return yield* failed(failure === undefined ? "it was interrupted" : failureText(failure))
})

/** The parts of the program that a handler has: time, chance, and where its output goes. */
const surroundings = (definition: BindingDefinition<unknown>): Effect.Effect<Context.Context<never>> =>
  Effect.map(Effect.context<never>(), (context) => {
    const kept = Context.pick(
      Clock.Clock,
      Random.Random,
      Scheduler.Scheduler,
      Console.Console,
      References.CurrentLoggers,
      References.MinimumLogLevel,
      References.LogToStderr
    )(context)
    const annotations = { ...BindingAnnotations.of(definition), rehearsal: true }
    return kept.pipe(
      Context.add(References.CurrentLogAnnotations, annotations),
      Context.add(Metric.MetricRegistry, new Map())
    )
  })

/** A producer that counts the records that it gets, and publishes none. */
const pretended = (): { readonly producer: Producer; readonly published: () => number } => {
  let published = 0
  const stored = ({ topic, partition = 0 }: Parameters<Producer["send"]>[0]) => {
    published++
    return { topic, partition, offset: 0n }
  }
  return {
    published: () => published,
    producer: {
      send: (record) => Effect.sync(() => stored(record)),
      sendAll: (records) => Effect.sync(() => records.map(stored)),
      sendEach: (records, onAnswer) =>
        Effect.sync(() => {
          for (const [index, record] of records.entries()) onAnswer(index, Result.succeed(stored(record)))
        })
    }
  }
}
