import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Binding, CircuitBreaker, DeadLetter, EventBusError, Ranges, RetryPolicy, Serde } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import {
  DeadEventManager,
  EventEnvelope,
  EventRetryPolicy,
  Inbox,
  InFlightTracker,
  ListenerRegistry,
  OrderedRelay,
  OutboxDispatcher,
  OutboxError,
  OutboxHealth,
  OutboxPoller,
  OutboxSchema,
  OutboxStore,
  PurgeScheduler,
  SqlIdempotencyStore
} from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Cause, Duration, Effect, Exit, Layer, Result, type Scope } from "effect"
import { orders, scenario, start } from "../scenarios/bus.ts"

/** Values of a wrong kind, which types do not keep out: they come from JSON, arithmetic and plain JavaScript. */
const odd: ReadonlyArray<unknown> = [
  Number.NaN,
  Infinity,
  -Infinity,
  -1,
  0.5,
  null,
  {},
  [],
  true,
  "",
  "1 secnod",
  { second: 1 }
]

type Kinds = Ranges.Range["kind"]

/** Values at the edges of the range, and odd ones. */
const valuesOf = ({ minimum, maximum, kind }: Ranges.Range): ReadonlyArray<unknown> => [
  ...odd,
  ...[minimum - 1, minimum, minimum + 1, maximum - 1, maximum, maximum + 1, 2 ** 31 - 1, 2 ** 31, 2 ** 53],
  ...(kind === "duration" ? ["1 second", "1.5 millis"] : ["1"])
]

/** The table, flat: each range with its path. */
const flat = (table: object, path = ""): ReadonlyArray<readonly [string, Ranges.Range]> =>
  Object.entries(table).flatMap(([name, range]: [string, Ranges.Range | object]) =>
    "kind" in range ? [[`${path}${name}`, range] as const] : flat(range, `${path}${name}.`)
  )

const nested = (path: string, value: unknown): object =>
  path.split(".").reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object

const issuesOf = (refused: unknown): ReadonlyArray<EventBusError.ConfigurationIssue> => {
  if (refused instanceof EventBusError.ConfigurationValidation) return refused.issues
  if (refused instanceof RetryPolicy.InvalidRetryPolicy || refused instanceof DeadLetter.InvalidDeadLetter)
    return refused.issues
  if (refused instanceof CircuitBreaker.InvalidCircuitBreaker) return refused.issues
  throw refused
}

const settings = { topic: "orders", groupId: "billing", value: Serde.bytes, handler: () => Effect.void }

/** The problems of a binding in code. */
const inCode = (make: () => object) => {
  try {
    const options = make()
    return Binding.problems([Binding.make("orders", { ...settings, ...options })]).get(0) ?? []
  } catch (refused) {
    return issuesOf(refused)
  }
}

const mentions = (issues: ReadonlyArray<EventBusError.ConfigurationIssue>, name: string) =>
  issues.filter(({ path }) => path === name || path.endsWith(`.${name}`))

/** The problems of the same binding in a file. Its keys end with `Ms` for durations. */
const inFile = (data: object) =>
  Configuration.decode({ eventbus: { bindings: { orders: { topic: "orders", groupId: "billing", ...data } } } }).pipe(
    Effect.result,
    Effect.map((result) => (Result.isFailure(result) ? result.failure.issues : []))
  )

const keyOf = (path: string, kind: Kinds) => (kind === "duration" ? `${path}Ms` : path)

/** The setting in code, and its section in a file, by the tables. */
const parts = [
  { table: Ranges.binding, section: "", code: (path: string, value: unknown) => () => nested(path, value) },
  {
    table: {
      blocking: Ranges.retry.blocking,
      partitions: Ranges.retry.partitions,
      replicationFactor: Ranges.retry.replicationFactor
    },
    section: "retry.",
    code: (path: string, value: unknown) => () => ({ retry: RetryPolicy.tiered(nested(path, value)) })
  },
  {
    table: Ranges.circuitBreaker,
    section: "circuitBreaker.",
    code: (path: string, value: unknown) => () => ({
      circuitBreaker: path.startsWith("openBackoff")
        ? { openBackoff: { multiplier: 2, maxWaitDuration: 1e9, [path.slice("openBackoff.".length)]: value } }
        : nested(path, value)
    })
  },
  {
    table: { alertTimeout: Ranges.deadLetter.alertTimeout },
    section: "deadLetter.",
    code: (path: string, value: unknown) => () => ({
      deadLetter: DeadLetter.alertAndStore(() => Effect.void, nested(path, value))
    })
  },
  {
    table: {
      cooldown: Ranges.deadLetter.cooldown,
      maxReplays: Ranges.deadLetter.maxReplays,
      batchSize: Ranges.deadLetter.batchSize
    },
    section: "deadLetter.replay.",
    code: (path: string, value: unknown) => () => ({ deadLetter: DeadLetter.scheduledReplay(nested(path, value)) })
  }
]

describe("C58 numbers beyond the protocol, NaN and odd types in code", () => {
  for (const { table, section, code } of parts) {
    it.effect(`CFG-21 ruling 84 code refuses exactly what a file refuses: ${section || "a binding's settings"}`, () =>
      Effect.gen(function* () {
        for (const [path, range] of flat(table)) {
          const name = path.slice(path.lastIndexOf(".") + 1)
          const key = keyOf(path, range.kind)
          for (const value of valuesOf(range)) {
            const refusedInCode = mentions(inCode(code(path, value)), name)
            const enabled = section.startsWith("circuitBreaker") ? { enabled: true } : {}
            const backoff = path.startsWith("openBackoff")
              ? { openBackoff: { multiplier: 2, maxWaitDurationMs: 1e9, [key.slice("openBackoff.".length)]: value } }
              : nested(key, value)
            const inner = { ...enabled, ...backoff }
            const data = section === "" ? inner : nested(section.slice(0, -1), inner)
            const refusedInFile = mentions(yield* inFile(data), keyOf(name, range.kind))
            const what = `${section}${path} = ${typeof value === "object" ? JSON.stringify(value) : String(value)}`
            const found = [refusedInCode.length > 0, refusedInFile.length > 0]
            // Rules over several settings may refuse a number that is in its range, in both.
            assert.strictEqual(found[0], found[1], `${what}: refused in code ${found[0]}, in a file ${found[1]}`)
            if (!Ranges.contains(range, range.kind === "duration" ? Ranges.millisOf(value) : value)) {
              assert.isAbove(refusedInCode.length, 0, what)
              assert.include(
                refusedInCode.map(({ allowed }) => allowed),
                Ranges.inWords(range),
                what
              )
            }
          }
        }
      })
    )
  }

  it.effect("ruling 84 a tier's numbers, by index", () =>
    Effect.gen(function* () {
      for (const [path, range] of flat(Ranges.retry.tier)) {
        for (const value of valuesOf(range)) {
          const issues = inCode(() => ({ retry: RetryPolicy.tiered({ tiers: [{ delay: 1_000, [path]: value }] }) }))
          const tier = { delayMs: 1_000, [keyOf(path, range.kind)]: value }
          const inAFile = mentions(yield* inFile({ retry: { tiers: [tier] } }), keyOf(path, range.kind))
          assert.strictEqual(mentions(issues, path).length > 0, inAFile.length > 0, `${path} = ${String(value)}`)
        }
      }
    })
  )

  scenario("ruling 84 registering refuses each with path, what was found and the range, all at once", () =>
    Effect.gen(function* () {
      const wrong = {
        fetchMaxWait: 2_147_483_648,
        sessionTimeout: 2_147_483_648,
        commitInterval: Number.NaN,
        shutdownTimeout: {},
        rebalanceTimeout: "1 secnod" as "1 second",
        maxInFlight: Infinity
      }
      const { connector } = yield* start()
      const binding = Binding.make("orders", { ...orders, ...wrong, handler: () => Effect.void })
      const error = yield* Effect.flip(connector.register(binding))
      assert.instanceOf(error, EventBusError.ConfigurationValidation)
      const int32 = 'a duration such as "10 seconds", or a whole number of ms'
      assert.deepStrictEqual(
        (error as EventBusError.ConfigurationValidation).issues.map(({ path, found, allowed }) => [
          path,
          found,
          allowed
        ]),
        [
          ["commitInterval", "NaN", `${int32}, 0 ms to 2147483647 ms`],
          ["sessionTimeout", "2147483648", `${int32}, 1000 ms to 2147483647 ms`],
          ["rebalanceTimeout", "'1 secnod'", `${int32}, 1 ms to 2147483647 ms`],
          ["fetchMaxWait", "2147483648", `${int32}, 0 ms to 2147483647 ms`],
          ["maxInFlight", "Infinity", "a whole number, 1 to 2147483647"],
          ["shutdownTimeout", "{}", `${int32}, 0 ms to 2147483647 ms`]
        ]
      )
    })
  )

  it("ruling 84 the connection's numbers, too", () => {
    const wrong = { connectionTimeout: {}, requestTimeout: 2 ** 31, retries: Number.NaN, metadataMaxAge: null }
    let refused: unknown
    try {
      KafkaJs.make({ brokers: ["a:1"], ...(wrong as object) })
    } catch (error) {
      refused = error
    }
    assert.deepStrictEqual(
      issuesOf(refused).map(({ path, found }) => [path, found]),
      [
        ["KafkaJs.connectionTimeout", "{}"],
        ["KafkaJs.requestTimeout", "2147483648"],
        ["KafkaJs.retries", "NaN"],
        ["KafkaJs.metadataMaxAge", "null"]
      ]
    )
  })

  it("ruling 84 durations beyond 24 days that only the connector waits are taken, and what Effect reads as zero is none", () => {
    const days = Duration.toMillis(Duration.days(60))
    assert.deepStrictEqual(
      inCode(() => ({ maxPollInterval: days, retry: RetryPolicy.tiered({ tiers: ["60 days"] }) })),
      []
    )
    for (const value of odd)
      assert.isNotTrue(Number.isSafeInteger(Ranges.millisOf(value)) && Ranges.millisOf(value) >= 0, String(value))
    assert.strictEqual(Ranges.millisOf({ seconds: 1.1 }), 1_100)
    assert.strictEqual(Ranges.millisOf([2, 500_000_000]), 2_500)
  })
})

const database = Layer.provideMerge(Layer.mergeAll(OutboxStore.layer()), NodeSqlite.layer({ filename: ":memory:" }))
const noListener = ListenerRegistry.layer([])

/** The message of a refusal, be it a failure, a defect or thrown. */
const refusal = <A, R>(attempt: () => Effect.Effect<A, unknown, R>) =>
  Effect.map(Effect.exit(Effect.suspend(attempt)), (exit) => {
    const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    return error instanceof OutboxError.InvalidOutboxConfig
      ? error.issues.map(({ path, found }) => [path, found])
      : error
  })

const nan = Number.NaN

describe("C58 the outbox", () => {
  for (const [title, attempt, expected] of [
    [
      "backoff",
      () => Effect.sync(() => EventRetryPolicy.exponential(nan, "1 secnod" as "1 second")),
      [
        ["base", "NaN"],
        ["max", "'1 secnod'"]
      ]
    ],
    ["fixed backoff", () => Effect.sync(() => EventRetryPolicy.fixed({})), [["delay", "{}"]]],
    [
      "purge",
      () =>
        PurgeScheduler.make({
          purger: () => Effect.succeed(0),
          retention: {},
          batchSize: nan,
          interval: null as never
        }),
      [
        ["retention", "{}"],
        ["batchSize", "NaN"],
        ["interval", "null"]
      ]
    ],
    [
      "tracker",
      () => Effect.clockWith((clock) => Effect.sync(() => InFlightTracker.make({ clock, ttl: nan }))),
      [["ttl", "NaN"]]
    ]
  ] as ReadonlyArray<
    readonly [string, () => Effect.Effect<unknown, unknown, Scope.Scope>, ReadonlyArray<ReadonlyArray<string>>]
  >) {
    it.effect(`ruling 84 ${title}: refused with the name and what was found`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* refusal(attempt), expected)
        })
      )
    )
  }

  it.effect(
    "ruling 84 dispatcher, poller, relay, health, inbox, keys and dead events refuse them, and replayAll ends",
    () =>
      Effect.gen(function* () {
        yield* OutboxSchema.migrate()
        yield* Inbox.migrate()
        const handler = { handle: () => true }
        const seen = [
          yield* refusal(() =>
            OutboxPoller.make({ handler, skipRecent: "1 secnod" as "1 second", batchSize: nan, interval: {} })
          ),
          yield* refusal(() => OutboxDispatcher.make({ workerCount: nan, drainTimeout: {}, listenerTimeout: nan })),
          yield* refusal(() => OrderedRelay.make({ batchSize: 0.5, listenerTimeout: {}, interval: Infinity })),
          yield* refusal(() => Layer.build(OutboxHealth.layer({ maxAge: nan }))),
          yield* refusal(() => Effect.flatMap(Inbox.make(), (inbox) => inbox.purge({}, nan))),
          yield* refusal(() => SqlIdempotencyStore.purge({ limit: nan })),
          yield* refusal(() => Layer.build(SqlIdempotencyStore.layer({ purgeInterval: nan }))),
          yield* refusal(() => Effect.flatMap(DeadEventManager.make(), ({ replayAll }) => replayAll({}, nan))),
          yield* refusal(() => Effect.flatMap(DeadEventManager.make(), ({ query }) => query({}, 0.5))),
          yield* refusal(() => Effect.flatMap(OutboxStore.OutboxStore, ({ purgeTerminal }) => purgeTerminal({}, 10)))
        ]
        assert.deepStrictEqual(seen, [
          [
            ["batchSize", "NaN"],
            ["interval", "{}"],
            ["skipRecent", "'1 secnod'"]
          ],
          [
            ["workerCount", "NaN"],
            ["drainTimeout", "{}"],
            ["listenerTimeout", "NaN"]
          ],
          [
            ["batchSize", "0.5"],
            ["interval", "Infinity"],
            ["listenerTimeout", "{}"]
          ],
          [["maxAge", "NaN"]],
          [
            ["retention", "{}"],
            ["limit", "NaN"]
          ],
          [["limit", "NaN"]],
          [["purgeInterval", "NaN"]],
          [["batchSize", "NaN"]],
          [["limit", "0.5"]],
          [["duration", "{}"]]
        ])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(database, noListener)))
  )

  it.effect(
    "a header whose key and value are halves of one character is refused, and so are headers that are none",
    () =>
      Effect.gen(function* () {
        const write = (headers: unknown) =>
          Effect.flip(EventEnvelope.make({ eventType: "E", payload: 1, headers: headers as Record<string, string> }))
        assert.include((yield* write({ "\ud83d": "\ude00" })).message, "lone surrogate")
        assert.include((yield* write(null)).message, "neither a map nor an object")
        assert.include((yield* write([["a", "b"]])).message, "not text")
      })
  )

  it.effect("ruling 48 a table name that SQL reserves is refused with the rule, wherever a table is named", () =>
    Effect.gen(function* () {
      for (const table of ["order", "SELECT", "app.group", "user"]) {
        for (const make of [
          OutboxStore.make({ table }),
          Inbox.make({ table }),
          SqlIdempotencyStore.make({ table }),
          OutboxSchema.statements("pg", { table })
        ]) {
          const error = yield* Effect.flip(make as Effect.Effect<unknown, OutboxError.InvalidIdentifier>)
          assert.include(error.message, `"${table}" is not a legal table name`)
          assert.include(error.message, "no reserved word of SQL")
        }
      }
    }).pipe(Effect.provide(database))
  )
})
