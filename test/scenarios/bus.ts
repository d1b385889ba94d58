/**
 * Every scenario starts from this: an in-memory cluster, a connector, and a journal of its events.
 */
import { it } from "@effect/vitest"
import { type Binding, type Broker, EventBusConnector, type EventBusEvent, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Context, type Duration, Effect, Exit, Fiber, Layer, Logger, Metric, Scope } from "effect"
import { TestClock } from "effect/testing"

type Event = EventBusEvent.EventBusEvent
type Tag = Event["_tag"]
type Refusal = Effect.Error<ReturnType<EventBusConnector.EventBusConnector["Service"]["register"]>>

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
export const text = (value: Uint8Array | null | undefined): string | null =>
  value === null || value === undefined ? null : new TextDecoder().decode(value)

/** Bytes that no codec makes smaller. */
export const incompressible = (length: number): Uint8Array => {
  let state = 2
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 24
  })
}

/** One test on a cluster and a virtual clock of its own. */
export const scenario = <E>(
  title: string,
  body: () => Effect.Effect<void, E, MemoryBroker.MemoryBroker | Broker.Broker | Scope.Scope>,
  { timeoutMillis, ...options }: MemoryBroker.Options & { readonly timeoutMillis?: number } = {}
): void => it.effect(title, () => Effect.provide(body(), layer(options)), timeoutMillis)

/** The same outside of a test function, for properties and seeds: many runs in one test, without log lines. */
export const runScenario = <E>(
  body: Effect.Effect<void, E, MemoryBroker.MemoryBroker | Broker.Broker | Scope.Scope>,
  options?: MemoryBroker.Options
): Promise<void> =>
  Effect.runPromise(
    body.pipe(
      Effect.scoped,
      Effect.provide(Layer.mergeAll(layer(options).pipe(Layer.provideMerge(TestClock.layer())), Logger.layer([])))
    )
  )

/** Settings that most bindings of these tests share: topic `orders`, group `billing`, text values, and no retry topics, which few of these scenarios are about. */
export const orders = {
  topic: "orders",
  groupId: "billing",
  value: Serde.string,
  retry: RetryPolicy.blocking()
} as const

/** A connector of its own on a cluster: one process of an application. */
export interface App {
  readonly connector: EventBusConnector.EventBusConnector["Service"]
  readonly events: ReadonlyArray<Event>
  readonly of: <T extends Tag>(tag: T) => ReadonlyArray<Extract<Event, { readonly _tag: T }>>
  readonly close: Effect.Effect<void>
}

/** Starts the bindings in one process; closing it is a graceful shutdown. Closed with the test otherwise. */
export const start = <R = never>(
  ...bindings: ReadonlyArray<Binding.Binding<R>>
): Effect.Effect<App, Refusal, R | Broker.Broker | Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (open) => inTime(Scope.close(open, Exit.void)))
    const context = yield* Layer.buildWithScope(EventBusConnector.layer, scope)
    const connector = Context.get(context, EventBusConnector.EventBusConnector)
    const events: Array<Event> = []
    yield* Scope.provide(
      connector.subscribe((event) => events.push(event)),
      scope
    )
    for (const binding of bindings) yield* connector.register(binding)
    yield* settle
    const app: App = {
      connector,
      events,
      of: (tag) => events.filter((event): event is never => event._tag === tag),
      close: Scope.close(scope, Exit.void)
    }
    return app
  })

/** The usage of a broker that no client is connected to any more. */
export const nothingInUse = { consumers: 0, producers: 0, readers: 0, admins: 0, members: 0, timers: 0 }

/** No chain of fibers in these tests is longer than so many turns of the scheduler. Many short runs may do with less. */
export const Turns = Context.Reference<number>("test/Turns", { defaultValue: () => 300 })

/** Lets everything that is due now happen. */
export const settle: Effect.Effect<void> = Effect.flatMap(Turns, (times) =>
  Effect.repeat(Effect.yieldNow, { times })
).pipe(Effect.asVoid)

/** Moves the clock on, and lets what became due happen. */
export const advance = (duration: Duration.Input): Effect.Effect<void> =>
  Effect.andThen(TestClock.adjust(duration), settle)

/** Lets things happen until the condition holds; virtual time moves on by `step` in between, when one is given. */
export const until = Effect.fnUntraced(function* (condition: () => boolean, step?: Duration.Input) {
  for (let round = 0; round < 200 && !condition(); round++) {
    yield* step === undefined ? settle : advance(step)
  }
  if (!condition()) return yield* Effect.die(new Error(`never came true: ${condition}`))
})

/** Runs something that takes time, moving virtual time on until it is done. */
export const inTime = Effect.fnUntraced(function* <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  step: Duration.Input = "5 seconds"
) {
  const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
  yield* until(() => fiber.pollUnsafe() !== undefined, step)
  return yield* Fiber.join(fiber)
})

/** Virtual milliseconds since the test began. */
export const now = Clock.currentTimeMillis

/** Values published to one topic, in order, each with its own key unless `key` says otherwise. */
export const publish = Effect.fnUntraced(function* (
  topic: string,
  values: ReadonlyArray<string | null>,
  key: (index: number) => string | null = (index) => `k${index}`
) {
  const memory = yield* MemoryBroker.MemoryBroker
  const broker = memory.broker
  yield* Effect.scoped(
    Effect.gen(function* () {
      const producer = yield* broker.producer()
      yield* producer.sendAll(
        values.map((value, index) => {
          const k = key(index)
          return { topic, key: k === null ? null : bytes(k), value: value === null ? null : bytes(value) }
        })
      )
    })
  )
})

/** Appends values to one partition. */
export const append = Effect.fnUntraced(function* (topic: string, partition: number, values: ReadonlyArray<string>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.append(
    topic,
    partition,
    values.map((value, index) => ({ key: bytes(`k${index}`), value: bytes(value) }))
  )
})

/** Header values of a record as text, by name. */
export const headersOf = (
  record: { readonly headers: ReadonlyArray<{ readonly key: string; readonly value: Uint8Array | null }> } | undefined
): ReadonlyMap<string, string | null> => new Map(record?.headers.map((header) => [header.key, text(header.value)]))

/** Values of a partition's readable records, as text. */
export const valuesOf = Effect.fnUntraced(function* (topic: string, partition = 0) {
  const memory = yield* MemoryBroker.MemoryBroker
  return (yield* memory.log(topic, partition)).map((record) => text(record.value))
})

/** The gauges of dead letter topics as somebody sees them who reads them regularly. */
export const deadLetterDepth = Effect.gen(function* () {
  const read = Effect.map(Metric.snapshot, (all) =>
    all.flatMap((series) =>
      series.id === "eventbus.dlt.depth" && series.type === "Gauge" ? [Number(series.state.value)] : []
    )
  )
  // The first look asks the cluster; the answer is there a round later.
  yield* read
  yield* advance("15 seconds")
  yield* advance("5 seconds")
  return yield* read
})

export const layer = (options?: MemoryBroker.Options): Layer.Layer<MemoryBroker.MemoryBroker | Broker.Broker> =>
  MemoryBroker.layer(options)
