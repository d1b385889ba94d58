/**
 * Ruling 86 on the outbox: user functions that throw, return something else than their type says, or fail with errors whose getters throw
 * neither stop a worker nor keep an event.
 */
import { assert, it } from "@effect/vitest"
import {
  DeadEventManager,
  EventInterceptor,
  type EventRetryPolicy,
  ListenerRegistry,
  MetricsExporter,
  Outbox,
  OutboxHealth,
  OutboxStore,
  PurgeScheduler,
  TxContext,
  type WriterHook
} from "@eventbus/outbox"
import { Effect, Exit, Layer, Logger, Result } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "../outbox/databases.ts"

const throwing = () => {
  throw new Error("a hostile getter")
}

/** An object every access of which throws. */
const hostileProxy = new Proxy(
  {},
  { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing, getOwnPropertyDescriptor: throwing }
)

const withProperty = (key: string, descriptor: PropertyDescriptor) =>
  Object.defineProperty(new Error("plain"), key, descriptor)

const cyclic = new Error("cyclic")
cyclic.cause = cyclic

/** Values that a listener may throw or fail with. */
const errors: Readonly<Record<string, unknown>> = {
  undefined: undefined,
  null: null,
  number: 42,
  bigint: 42n,
  symbol: Symbol("thrown"),
  text: "thrown text",
  "empty text": "",
  "NUL and a lone surrogate": "a\0b\ud800",
  "a megabyte": "x".repeat(1_000_000),
  "a function": () => 1,
  "no prototype": Object.create(null),
  "toJSON throws": { toJSON: throwing },
  "a Proxy that always throws": hostileProxy,
  "a Symbol as message": withProperty("message", { value: Symbol("message") }),
  "message throws": withProperty("message", { get: throwing }),
  "stack throws": withProperty("stack", { get: throwing }),
  "name is a Symbol": withProperty("name", { value: Symbol("name") }),
  "cause throws": withProperty("cause", { get: throwing }),
  "a cyclic cause": cyclic,
  "a tag that throws": withProperty("_tag", { get: throwing }),
  "a bigint as field": { amount: 1n },
  "an error without a message": new TypeError()
}

/** Values that a listener may return instead of an Effect. */
const results: Readonly<Record<string, unknown>> = {
  undefined: undefined,
  null: null,
  false: false,
  number: 7,
  text: "done",
  symbol: Symbol("done"),
  "a Promise": Promise.resolve(1),
  "an array": [],
  "an object": { _tag: "Success" },
  "a function": () => Effect.void,
  "a Proxy that always throws": hostileProxy
}

/** The listeners, by event type: a hundred kinds of misbehaviour. */
const kinds: ReadonlyMap<string, () => Effect.Effect<unknown, unknown>> = new Map([
  ...Object.entries(errors).flatMap(
    ([name, error]): ReadonlyArray<[string, () => Effect.Effect<unknown, unknown>]> => [
      [`fails: ${name}`, () => Effect.fail(error)],
      [`dies: ${name}`, () => Effect.die(error)],
      [
        `throws: ${name}`,
        () => {
          throw error
        }
      ],
      [`fails later: ${name}`, () => Effect.andThen(Effect.yieldNow, Effect.fail(error))]
    ]
  ),
  ...Object.entries(results).map(([name, result]): [string, () => Effect.Effect<unknown, unknown>] => [
    `returns: ${name}`,
    () => result as Effect.Effect<unknown, unknown>
  ]),
  // Effect makes text of what it meets; a value that has none ends the process (an object without a prototype, for example).
  ...Object.entries(results)
    .filter(([name]) => !name.includes("Proxy"))
    .map(([name, result]): [string, () => Effect.Effect<unknown, unknown>] => [
      `yields: ${name}`,
      () => Effect.flatMap(Effect.yieldNow, () => result as Effect.Effect<unknown, unknown>)
    ]),
  ["interrupts: itself", () => Effect.interrupt],
  ["interrupts: itself later", () => Effect.andThen(Effect.yieldNow, Effect.interrupt)],
  [
    "interrupts: its own fiber",
    () =>
      Effect.withFiber((fiber) => {
        fiber.interruptUnsafe()
        return Effect.never
      })
  ]
])

/** Only a `listenerTimeout` ends these. */
const endless: ReadonlyMap<string, () => Effect.Effect<unknown, unknown>> = new Map([
  ["never ends", () => Effect.never],
  ["never ends, later", () => Effect.andThen(Effect.yieldNow, Effect.never)],
  [
    "never ends, and fails when it is interrupted",
    () => Effect.onInterrupt(Effect.never, () => Effect.die(hostileProxy))
  ]
])

/** Results of a retry policy. All but the last few are not allowed, and then the wait is a minute. */
const delays: ReadonlyArray<() => unknown> = [
  throwing,
  () => {
    throw hostileProxy
  },
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => undefined,
  () => null,
  () => "1 second",
  () => ({}),
  () => hostileProxy,
  () => Symbol("delay"),
  () => 1n,
  () => Promise.resolve(1),
  () => () => 1
]

const good = Array.from({ length: 10 }, (_, i) => `good ${i}`)

const rows = SqlClient.SqlClient.use((sql) =>
  sql.unsafe<{ event_type: string; status: number; last_error: string | null; locked_by: string | null }>(
    "SELECT event_type, status, last_error, locked_by FROM outbox_event ORDER BY seq"
  )
)

const fast: EventRetryPolicy.EventRetryPolicy = () => 20

const shapes = (
  retryPolicy: EventRetryPolicy.EventRetryPolicy,
  more: { readonly listenerTimeout?: "300 millis" } = {}
) => {
  const common = { interval: "50 millis", ...more } as const
  return {
    singleNode: Outbox.singleNode({ ...common, maxAttempts: 2, retryPolicy }),
    multiNode: Outbox.multiNode({
      ...common,
      maxAttempts: 2,
      retryPolicy,
      claimLocking: { lockTimeout: "5 minutes" }
    }),
    ordered: Outbox.ordered(common),
    orderedNodes: Outbox.orderedNodes({ ...common, maxAttempts: 2, retryPolicy })
  }
}

const listeners = (seen: Array<string>) =>
  ListenerRegistry.layerAll((event) => {
    const kind = kinds.get(event.eventType) ?? endless.get(event.eventType)
    if (kind !== undefined) return kind()
    seen.push(event.eventType)
    return Effect.void
  })

const quiet = Logger.layer([Logger.make(() => {})])

/** Writes each event for an aggregate of its own, in one transaction. */
const write = (types: ReadonlyArray<string>, prefix = "") =>
  TxContext.withTransaction(
    Outbox.writeAll(
      types.map((eventType, i) => ({ eventType, aggregateType: "a", aggregateId: `${prefix}${i}`, payload: 1 }))
    )
  )

const until = (condition: Effect.Effect<boolean, unknown, SqlClient.SqlClient>) =>
  Effect.orDie(Effect.repeat(Effect.delay(condition, "20 millis"), { until: (done) => done })).pipe(
    Effect.timeout("50 seconds")
  )

const noneLeft = Effect.map(rows, (all) => all.every(({ status }) => status === 1 || status === 3))

onDatabases("C37 user code of the outbox misbehaves", (db) => {
  for (const name of ["singleNode", "multiNode", "ordered", "orderedNodes"] as const) {
    it.live(`ruling 86, ${name}: ${kinds.size} kinds of listeners stop no worker and keep no event`, () => {
      const seen: Array<string> = []
      return Effect.gen(function* () {
        yield* write([...kinds.keys()])
        yield* write(good)
        yield* until(noneLeft)
        assert.deepStrictEqual(seen.toSorted(), good)
        for (const { event_type, status, last_error, locked_by } of yield* rows) {
          assert.strictEqual(status, kinds.has(event_type) ? 3 : 1, event_type)
          assert.isNull(locked_by)
          if (kinds.has(event_type)) assert.isTrue(last_error !== null && last_error.length > 0, event_type)
        }
        const { problems, status } = yield* OutboxHealth.OutboxHealth.use((health) => health.check)
        assert.strictEqual(status, "degraded", "fibers died within the last minute")
        assert.isTrue(problems.some(({ source }) => source === "fiber"))
        const named = new Set(problems.filter(({ source }) => source === "listener").map((problem) => problem.name))
        for (const kind of kinds.keys()) assert.isTrue(named.has(`a:${kind}`), kind)
        for (const type of good) assert.isFalse(named.has(`a:${type}`))
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            shapes(fast)[name].pipe(Layer.provide(listeners(seen)), Layer.provideMerge(db.migrated)),
            quiet
          )
        )
      )
    })
  }
})

onDatabases("C37 user code under a listenerTimeout misbehaves", (db) => {
  for (const name of ["singleNode", "multiNode", "ordered", "orderedNodes"] as const) {
    it.live(
      `ruling 86, ${name}: ${kinds.size + endless.size} kinds of listeners end, those that never would included`,
      () => {
        const seen: Array<string> = []
        return Effect.gen(function* () {
          yield* write([...endless.keys(), ...kinds.keys()])
          yield* write(good)
          yield* until(noneLeft)
          assert.deepStrictEqual(seen.toSorted(), good)
          for (const { event_type, status, last_error } of yield* rows) {
            assert.strictEqual(status, event_type.startsWith("good") ? 1 : 3, event_type)
            if (status === 3) assert.isTrue(last_error !== null && last_error.length > 0, event_type)
          }
          const { problems } = yield* OutboxHealth.OutboxHealth.use((health) => health.check)
          const named = new Set(problems.filter(({ source }) => source === "listener").map((problem) => problem.name))
          for (const kind of [...kinds.keys(), ...endless.keys()]) assert.isTrue(named.has(`a:${kind}`), kind)
        }).pipe(
          Effect.provide(
            Layer.provideMerge(
              shapes(fast, { listenerTimeout: "300 millis" })[name].pipe(
                Layer.provide(listeners(seen)),
                Layer.provideMerge(db.migrated)
              ),
              quiet
            )
          )
        )
      }
    )
  }
})

onDatabases("C37 retry policies misbehave", (db) => {
  for (const name of ["singleNode", "multiNode", "orderedNodes"] as const) {
    it.live(
      `ruling 86, ${name}: after ${delays.length} kinds of results the events wait for a minute, and no worker stops`,
      () => {
        const seen: Array<string> = []
        let calls = 0
        const policy = (() => delays[calls++ % delays.length]!()) as EventRetryPolicy.EventRetryPolicy
        return Effect.gen(function* () {
          yield* write(delays.map(() => "fails: text"))
          yield* write(good, "good ")
          const statuses = Effect.map(rows, (all) => all.map(({ status }) => status))
          yield* until(Effect.map(statuses, (all) => all.every((status) => status === 1 || status === 2)))
          assert.deepStrictEqual(seen.toSorted(), good)
          assert.deepStrictEqual(yield* statuses, [...delays.map(() => 2), ...good.map(() => 1)])
          assert.strictEqual(calls, delays.length)
          const { problems } = yield* OutboxHealth.OutboxHealth.use((health) => health.check)
          const policies = problems.filter(({ source }) => source === "function")
          assert.deepStrictEqual(
            policies.map((problem) => [problem.name, problem.count]),
            [["retryPolicy", delays.length]]
          )
          assert.isFalse(problems.some(({ source }) => source === "fiber"))
        }).pipe(
          Effect.provide(
            Layer.provideMerge(
              shapes(policy)[name].pipe(Layer.provide(listeners(seen)), Layer.provideMerge(db.migrated)),
              quiet
            )
          )
        )
      }
    )
  }
})

/** Each makes one kind of user function misbehave. Everything is delivered all the same. */
const misbehaving: Readonly<
  Record<string, { readonly options: Parameters<typeof Outbox.singleNode>[0]; readonly problem: string | undefined }>
> = {
  "a retry policy that throws": { options: { retryPolicy: throwing }, problem: "retryPolicy" },
  "a retry policy that returns text": {
    options: { retryPolicy: (() => "1 second") as unknown as EventRetryPolicy.EventRetryPolicy },
    problem: "retryPolicy"
  },
  "a retry policy that waits for ever": { options: { retryPolicy: () => Number.MAX_VALUE }, problem: undefined },
  "interceptors that throw, and return no Effect": {
    options: {
      interceptors: [
        EventInterceptor.after(throwing),
        EventInterceptor.after(() => undefined as unknown as Effect.Effect<void>),
        EventInterceptor.after(() => Effect.fail(hostileProxy))
      ]
    },
    problem: undefined
  },
  "hooks that throw, and return no Effect": {
    options: {
      hook: {
        afterWrite: throwing,
        afterCommit: () => 7 as unknown as Effect.Effect<void>,
        afterRollback: () => Effect.flatMap(Effect.yieldNow, () => undefined as unknown as Effect.Effect<void>)
      }
    },
    problem: undefined
  }
}

const throwingExporter = Object.fromEntries(
  Object.keys(MetricsExporter.noop).map((name) => [name, throwing])
) as unknown as MetricsExporter.MetricsExporter

onDatabases(
  "C37 other functions misbehave",
  (db) => {
    const problemsAfter = (
      layer: Layer.Layer<never, never, never>,
      options: Parameters<typeof Outbox.singleNode>[0]
    ) => {
      const seen: Array<string> = []
      return Effect.gen(function* () {
        yield* write(["fails: text", ...good])
        yield* until(Effect.sync(() => seen.length === good.length))
        yield* until(
          Effect.map(rows, (all) => all[0]!.status !== 0 && all.slice(1).every(({ status }) => status === 1))
        )
        assert.deepStrictEqual(seen.toSorted(), good)
        assert.strictEqual((yield* rows)[0]!.status, 2)
        return (yield* OutboxHealth.OutboxHealth.use((health) => health.check)).problems
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            Outbox.singleNode({ interval: "50 millis", ...options }).pipe(
              Layer.provide(listeners(seen)),
              Layer.provide(layer),
              Layer.provideMerge(db.migrated)
            ),
            quiet
          )
        )
      )
    }

    for (const [name, { options, problem }] of Object.entries(misbehaving)) {
      it.live(`ruling 86: ${name}`, () =>
        Effect.gen(function* () {
          const problems = yield* problemsAfter(Layer.empty, options)
          const functions = problems.filter(({ source }) => source === "function").map((found) => found.name)
          assert.deepStrictEqual(functions, problem === undefined ? [] : [problem])
        })
      )
    }

    it.live("ruling 86: a metrics exporter that throws", () =>
      Effect.gen(function* () {
        const problems = yield* problemsAfter(Layer.succeed(MetricsExporter.Current, throwingExporter), {
          retryPolicy: () => 60_000
        })
        assert.isTrue(problems.some(({ name }) => name === "metrics exporter's incrementDispatchSuccess"))
      })
    )

    it.live(
      "ruling 86: a purger that throws, returns no Effect, or returns no number, runs again after its interval",
      () => {
        let calls = 0
        const answers: ReadonlyArray<() => unknown> = [
          throwing,
          () => undefined,
          () => Effect.succeed("many"),
          () => Effect.flatMap(Effect.yieldNow, () => 7 as unknown as Effect.Effect<number>),
          () => Effect.fail(hostileProxy),
          () => Effect.succeed(0)
        ]
        return Effect.gen(function* () {
          const purger = (() => answers[Math.min(calls++, 5)]!()) as unknown as PurgeScheduler.EventPurger
          const scheduler = yield* PurgeScheduler.make({ purger, interval: "20 millis" })
          yield* scheduler.start
          yield* until(Effect.sync(() => calls >= 8))
        }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(db.migrated, quiet)))
      }
    )

    it.live("ruling 86: a codec that throws refuses the write, and makes an unreadable row DEAD", () => {
      const seen: Array<string> = []
      let broken = true
      const codec = {
        toJson: () => (broken ? throwing() : "ok"),
        parseObject: (text: string | null) => (text === "ok" ? Result.succeed(new Map()) : throwing())
      }
      return Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const refused = yield* Effect.flip(write(["refused"]))
        assert.deepInclude(refused, { _tag: "InvalidEnvelope", field: "headers" })
        broken = false
        yield* write(good)
        yield* sql`UPDATE outbox_event SET headers = 'no' WHERE event_type = 'good 3' AND status = 0`
        yield* until(noneLeft)
        assert.isTrue(seen.length >= 9)
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            Outbox.ordered({ codec, interval: "50 millis" }).pipe(
              Layer.provide(listeners(seen)),
              Layer.provideMerge(db.migrated)
            ),
            quiet
          )
        )
      )
    })

    it.live("ruling 86: a beforeWrite that misbehaves fails its own write and keeps no transaction open", () => {
      const hostile: ReadonlyArray<WriterHook.WriterHook["beforeWrite"]> = [
        throwing,
        () => undefined as unknown as Effect.Effect<null>,
        () => Effect.succeed("no list" as unknown as null),
        () => Effect.flatMap(Effect.yieldNow, () => undefined as unknown as Effect.Effect<null>)
      ]
      let next = 0
      const hook: WriterHook.WriterHook = {
        beforeWrite: (events) => (next < hostile.length ? hostile[next++]!(events) : Effect.succeed(events))
      }
      const seen: Array<string> = []
      return Effect.gen(function* () {
        for (const _ of hostile) {
          assert.isTrue(Exit.isFailure(yield* Effect.exit(write(["lost"]))))
        }
        yield* write(good)
        yield* until(Effect.sync(() => seen.length === good.length))
        const store = yield* OutboxStore.OutboxStore
        yield* until(Effect.map(store.lag, ({ pending }) => pending === 0))
        const dead = yield* DeadEventManager.DeadEventManager.use((manager) => manager.count())
        assert.strictEqual(dead, 0)
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            Outbox.singleNode({ hook, interval: "50 millis" }).pipe(
              Layer.provide(listeners(seen)),
              Layer.provideMerge(db.migrated)
            ),
            quiet
          )
        )
      )
    })
  },
  ["SQLite", "PostgreSQL"]
)
