/** Ruling 38: every option in code has its kind. One of another kind is refused with its path, what was found and what is allowed, by whichever part takes it. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@eventbus/core"
import {
  DeadEventManager,
  DispatcherWriterHook,
  Inbox,
  InFlightTracker,
  JsonCodec,
  ListenerRegistry,
  MetricsExporter,
  OrderedRelay,
  Outbox,
  OutboxDispatcher,
  OutboxError,
  OutboxHealth,
  OutboxPoller,
  OutboxSchema,
  OutboxStore,
  OutboxWriter,
  PurgeScheduler,
  SqlIdempotencyStore,
  TxContext
} from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import * as MySql2 from "@eventbus/outbox/MySql2"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { MemoryBroker } from "@eventbus/testkit"
import { Cause, Effect, Exit, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"

const fail = () => {
  throw new Error("trap")
}

/** Every look at it throws. */
const hostile = new Proxy(
  {},
  { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail, getOwnPropertyDescriptor: fail }
)

const wrong: ReadonlyArray<readonly [string, unknown]> = [
  ["undefined", undefined],
  ["null", null],
  ["NaN", Number.NaN],
  ["-1", -1],
  ["0.5", 0.5],
  ['""', ""],
  ['"x y"', "x y"],
  ["true", true],
  ["{}", {}],
  ["[]", []],
  ["[undefined]", [undefined]],
  ["a function", () => undefined],
  ["a symbol", Symbol("s")],
  ["a bigint", 1n],
  ["an object without a prototype", Object.create(null)],
  ["a Proxy that throws", hostile]
]

const interceptor = { beforeDispatch: () => Effect.void, afterDispatch: () => Effect.void }
const hook = {
  beforeWrite: Effect.succeed,
  afterWrite: () => Effect.void,
  afterCommit: () => Effect.void,
  afterRollback: () => Effect.void
}
const tracker = { tryAcquire: () => true, release: () => {} }
const claimLocking = { owner: "node", lockTimeout: "1 minute" }
const purge = { retention: "1 day", batchSize: 10, interval: "1 hour", batchTimeout: "1 minute" }
const store = { table: "outbox_event", codec: JsonCodec.defaultCodec, onDone: "keep" }
const common = {
  ...{ ...store, interceptors: [interceptor], interval: "1 second", batchSize: 10 },
  ...{ drainTimeout: "1 second", listenerTimeout: "1 second", purge }
}
const single = {
  ...{ ...common, workerCount: 1, hotQueueCapacity: 1, coldQueueCapacity: 1, maxAttempts: 1 },
  ...{ retryPolicy: () => 1, skipRecent: 0, hook }
}

/** A part with every option that it has, and the options that may not be absent. */
interface Part {
  readonly options: object
  readonly required?: ReadonlyArray<string>
  readonly make: (options: never) => Effect.Effect<unknown, unknown, never> | Layer.Layer<unknown, unknown, never>
}

const parts = {
  "Outbox.singleNode": { options: single, make: Outbox.singleNode },
  "Outbox.multiNode": {
    options: { ...single, claimLocking },
    required: ["claimLocking", "claimLocking.lockTimeout"],
    make: Outbox.multiNode
  },
  "Outbox.ordered": { options: common, make: Outbox.ordered },
  "Outbox.orderedNodes": {
    options: {
      ...{ ...common, workerCount: 1, maxAttempts: 1, maxInMemory: 10, pipelining: 1, retryPolicy: () => 1 },
      ...{ afterFailure: "hold", leases: { owner: "node", lease: "1 minute" } }
    },
    make: Outbox.orderedNodes
  },
  "Outbox.writerOnly": { options: { ...store, purge: { ...purge, by: "age" } }, make: Outbox.writerOnly },
  OutboxDispatcher: {
    options: {
      ...{ workerCount: 1, hotQueueCapacity: 1, coldQueueCapacity: 1, maxAttempts: 1, retryPolicy: () => 1 },
      ...{ interceptors: [interceptor], drainTimeout: 1, listenerTimeout: 1, inFlightTracker: tracker, claimLocking },
      onRetryScheduled: () => {}
    },
    required: ["claimLocking.owner", "claimLocking.lockTimeout"],
    make: OutboxDispatcher.make
  },
  OutboxPoller: {
    options: {
      handler: {
        ...{ handle: () => true, availableCapacity: () => 1, awaitCapacity: Effect.never },
        whilePolling: (poll: Effect.Effect<unknown>) => poll
      },
      ...{ skipRecent: 0, batchSize: 1, maxBatchSize: 100, interval: 1, claimLocking }
    },
    required: ["handler", "handler.handle", "claimLocking.owner", "claimLocking.lockTimeout"],
    make: OutboxPoller.make
  },
  OrderedRelay: {
    options: {
      ...{ leases: { owner: "node", lease: "1 minute" }, workerCount: 1, maxAttempts: 1, retryPolicy: () => 1 },
      ...{ afterFailure: "hold", pipelining: 1, interceptors: [interceptor], listenerTimeout: 1, interval: 1 },
      ...{ batchSize: 1, maxInMemory: 10, drainTimeout: 1, codec: JsonCodec.defaultCodec }
    },
    required: ["leases.owner", "leases.lease"],
    make: OrderedRelay.make
  },
  OutboxStore: { options: store, make: OutboxStore.make },
  OutboxWriter: { options: { hook, claimedBy: "node" }, make: OutboxWriter.make },
  PurgeScheduler: {
    options: { ...purge, purger: () => Effect.succeed(0) },
    required: ["purger"],
    make: PurgeScheduler.make
  },
  DispatcherWriterHook: {
    options: { dispatcher: { enqueueHot: () => true }, onDropped: () => Effect.void },
    required: ["dispatcher", "dispatcher.enqueueHot"],
    make: DispatcherWriterHook.make
  },
  DeadEventManager: { options: { onReplayed: () => {} }, make: DeadEventManager.make },
  OutboxHealth: { options: { maxAge: 1 }, make: OutboxHealth.layer },
  Inbox: { options: { table: "outbox_inbox" }, make: Inbox.make },
  SqlIdempotencyStore: {
    options: { table: "eventbus_idempotency", purgeInterval: "1 hour" },
    make: SqlIdempotencyStore.layer
  },
  KafkaRelay: {
    options: {
      ...{ topic: "orders", key: () => null, format: { _tag: "cloudevents", source: "/shop" } },
      ...{ missingTopics: "wait", timestamp: "published", producer: {} }
    },
    required: ["format._tag", "format.source"],
    make: KafkaRelay.layer
  },
  NodeSqlite: {
    options: { filename: ":memory:", busyTimeout: 1, synchronous: "full", statementCacheSize: 1 },
    required: ["filename"],
    make: NodeSqlite.layer
  },
  MySql2: {
    options: {
      ...{ host: "127.0.0.1", port: 3306, database: "test", username: "root", password: Redacted.make("x") },
      ...{ maxConnections: 1, connectTimeout: 1 }
    },
    required: ["database", "username"],
    make: MySql2.layer
  }
} as unknown as Readonly<Record<string, Part>>

/** Every option as a path, those inside of other options too. */
const pathsOf = (value: unknown, path: ReadonlyArray<string> = []): ReadonlyArray<ReadonlyArray<string>> => {
  const isOpaque = typeof value !== "object" || value === null || Effect.isEffect(value) || Redacted.isRedacted(value)
  const below = isOpaque ? [] : Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, [...path, name]))
  return path.length === 0 ? below : [path, ...below]
}

const replaced = (value: unknown, [name, ...rest]: ReadonlyArray<string>, by: unknown): unknown => {
  if (name === undefined) return by
  const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...(value as object) }
  copy[name] = replaced(copy[name], rest, by)
  return copy
}

const written = (path: ReadonlyArray<string>) =>
  path.reduce((text, name) => (/^\d+$/.test(name) ? `${text}[${name}]` : text === "" ? name : `${text}.${name}`), "")

const functions =
  /(beforeDispatch|afterDispatch|beforeWrite|afterWrite|afterCommit|afterRollback|retryPolicy|toJson|parseObject|tryAcquire|release|onRetryScheduled|handle|availableCapacity|whilePolling|purger|onDropped|onReplayed|enqueueHot|key|topic)$/
const names = /(owner|claimedBy|source|filename|database|username|host)$/
const structs = /^(interceptors\[0\]|hook|purge|leases|producer)$/

/** The values that the types allow in each place. */
const isLegal = (part: string, path: string, name: string, required: ReadonlyArray<string>): boolean => {
  if (name === "undefined") return !required.includes(path) && !/\]$|^codec\./.test(path) && !/Tracker\./.test(path)
  if (functions.test(path) && name === "a function") return true
  if (names.test(path) && name === '"x y"') return true
  if (structs.test(path) && /^(\{\}|an object without a prototype)$/.test(name))
    return !(part === "OrderedRelay" && path === "leases")
  return path === "interceptors" && name === "[]"
}

const services = Layer.mergeAll(OutboxStore.layer(), TxContext.layer).pipe(
  Layer.provideMerge(Layer.effectDiscard(OutboxSchema.migrate())),
  Layer.provideMerge(NodeSqlite.layer({ filename: ":memory:" })),
  Layer.provideMerge(ListenerRegistry.layerAll(() => Effect.void)),
  Layer.provideMerge(MemoryBroker.layer()),
  Layer.orDie
)

const build = ({ make }: Part, options: unknown) =>
  Effect.exit(
    Effect.suspend(() => {
      const made = make(options as never)
      return Effect.scoped(Layer.isLayer(made) ? Layer.build(made) : made)
    })
  )

/** The problems that an outcome names; undefined when it has none. */
const issuesOf = (exit: Exit.Exit<unknown, unknown>) => {
  if (Exit.isSuccess(exit)) return undefined
  const error = Cause.squash(exit.cause)
  if (error instanceof OutboxError.InvalidIdentifier) return [{ path: "table", found: error.name, allowed: "a name" }]
  if (error instanceof BrokerError.UnexpectedBrokerError)
    return [{ path: "producer", found: error.code, allowed: error.message }]
  if (error instanceof OutboxError.InvalidState) return [{ path: "claimLocking", found: "undefined", allowed: "one" }]
  const { issues } = error as OutboxError.InvalidOutboxConfig
  assert.isArray(issues, String(error))
  return issues.map((issue) => ({ ...issue, path: issue.path.replace(/^(NodeSqlite|MySql2)\./, "") }))
}

describe("what a part of the outbox is given", () => {
  for (const [title, part] of Object.entries(parts)) {
    const { options, required = [] } = part
    it.effect(`ruling 38 ${title}: each option of another kind is refused with its path, or legal by its type`, () =>
      Effect.gen(function* () {
        for (const path of pathsOf(options)) {
          const at = written(path)
          // Every text names a file, which SQLite would make.
          for (const [name, value] of wrong.filter(([name]) => at !== "filename" || name !== '"x y"')) {
            const issues = issuesOf(yield* build(part, replaced(options, path, value)))
            const about = `${at}: ${name} gives ${JSON.stringify(issues)}`
            if (isLegal(title, at, name, required)) assert.isUndefined(issues, about)
            else
              assert.isTrue(
                issues?.some((issue) => issue.path.startsWith(at) || at.startsWith(issue.path)),
                about
              )
          }
        }
      }).pipe(Effect.provide(services))
    )

    it.effect(`ruling 38 ${title}: whole options of another kind are refused`, () =>
      Effect.gen(function* () {
        for (const [name, value] of wrong.slice(1)) {
          const issues = issuesOf(yield* build(part, value))
          const isWhole =
            /^(\{\}|an object without a prototype)$/.test(name) && required.every((path) => path.includes("."))
          if (isWhole) assert.isUndefined(issues, name)
          else assert.isAbove(issues?.length ?? 0, 0, name)
        }
      }).pipe(Effect.provide(services))
    )
  }

  for (const title of Object.keys(parts).filter((name) => name.startsWith("Outbox."))) {
    it.effect(
      `ruling 38 ${title}: an option that it does not have is refused, so that no misspelt one is ignored`,
      () =>
        Effect.gen(function* () {
          const { options } = parts[title]!
          const issues = issuesOf(yield* build(parts[title]!, { ...options, listenerTimout: "1 second" }))
          assert.deepStrictEqual(
            issues?.map(({ path }) => path),
            ["listenerTimout"]
          )
        }).pipe(Effect.provide(services))
    )
  }

  it.effect("ruling 38: all wrong options are reported at once, each with what was found and what is allowed", () =>
    Effect.gen(function* () {
      const exit = yield* build(parts["Outbox.singleNode"]!, {
        ...{ onDone: "Delete", hook: 5, interceptors: {}, purge: true, retryPolicy: 5, codec: {} }
      })
      assert.deepStrictEqual(
        issuesOf(exit)?.map(({ path, found, allowed }) => `${path}: ${found}; ${allowed.split(":")[0]}`),
        [
          "codec.toJson: undefined; a function",
          "codec.parseObject: undefined; a function",
          'onDone: \'Delete\'; "keep" or "delete"',
          "interceptors: {}; a list of interceptors",
          "purge: true; an object of settings",
          "retryPolicy: 5; a function",
          "hook: 5; an object with hooks"
        ]
      )
    }).pipe(Effect.provide(services))
  )

  it("ruling 38: registrations, trackers and prefixes of another kind are refused", () => {
    const thrown = (call: () => unknown) => {
      try {
        call()
      } catch (error) {
        return error instanceof OutboxError.InvalidOutboxConfig ? "refused" : error
      }
      return "taken"
    }
    for (const [name, value] of wrong) {
      const given = value as never
      const isFunction = name === "a function"
      assert.strictEqual(
        thrown(() => ListenerRegistry.layerAll(given)),
        isFunction ? "taken" : "refused",
        name
      )
      assert.strictEqual(
        thrown(() => ListenerRegistry.on("e", given)),
        isFunction ? "taken" : "refused",
        name
      )
      assert.strictEqual(
        thrown(() => ListenerRegistry.on(given, () => Effect.void)),
        name === '"x y"' ? "taken" : "refused",
        name
      )
      assert.strictEqual(
        thrown(() => ListenerRegistry.layer(given)),
        name === "[]" ? "taken" : "refused",
        name
      )
      assert.strictEqual(
        thrown(() => InFlightTracker.make(given)),
        "refused",
        name
      )
      if (name !== "undefined" && name !== '"x y"') {
        assert.include(String(Effect.runSyncExit(MetricsExporter.make(given))), "InvalidOutboxConfig", name)
      }
    }
  })

  it.effect("ruling 38: a node may have a name of 100 characters, in every shape that names its nodes", () =>
    Effect.gen(function* () {
      const owner = "n".repeat(100)
      for (const options of [
        ["Outbox.multiNode", { claimLocking: { owner, lockTimeout: "1 minute" } }],
        ["Outbox.orderedNodes", { leases: { owner } }]
      ] as const)
        assert.isUndefined(issuesOf(yield* build(parts[options[0]]!, options[1])), options[0])
    }).pipe(Effect.provide(services))
  )

  it.effect("ruling 38: an event of another kind is refused as an envelope, and nothing is written", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.make()
      for (const [name, value] of wrong) {
        const one = yield* Effect.flip(sql.withTransaction(writer.write(value as never)))
        assert.strictEqual(one._tag, "InvalidEnvelope", name)
        const all = yield* Effect.exit(sql.withTransaction(writer.writeAll(value as never)))
        if (name === "[]") assert.deepStrictEqual(all, Exit.succeed([]))
        else assert.include(String(all), "InvalidEnvelope", name)
      }
      assert.lengthOf(yield* sql`SELECT 1 FROM outbox_event`, 0)
    }).pipe(Effect.provide(services))
  )

  it.effect("a password that is no Redacted is refused and not shown", () =>
    Effect.gen(function* () {
      const { options } = parts["MySql2"]!
      const exit = yield* build(parts["MySql2"]!, { ...options, password: "hunter2" })
      assert.notInclude(JSON.stringify(issuesOf(exit)), "hunter2")
      assert.notInclude(String(exit), "hunter2")
    }).pipe(Effect.provide(services))
  )

  it.effect("ruling 38: topics of a relay are legal names, one by one", () =>
    Effect.gen(function* () {
      const relay = (topic: unknown) => Effect.map(build(parts["KafkaRelay"]!, { topic }), issuesOf)
      assert.deepStrictEqual(yield* relay(new Map([["a", "b"]])), undefined)
      for (const [topic, path] of [
        ["a b", "topic"],
        [new Map([["a", "x!"]]), "topic.a"],
        [new Map([["a", 5]]), "topic.a"],
        [new Map([[5, "a"]]), "topic (event type)"]
      ] as const)
        assert.deepStrictEqual(
          (yield* relay(topic))?.map((issue) => issue.path),
          [path]
        )
    }).pipe(Effect.provide(services))
  )
})
