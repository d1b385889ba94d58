import { assert, describe, it } from "@effect/vitest"
import {
  Binding,
  Choices,
  CircuitBreaker,
  type ConsumerRecord,
  DeadLetter,
  EventBusError,
  IdempotencyStore,
  Interceptor,
  RetryPolicy,
  Route,
  Serde,
  TopicName
} from "@eventbus/core"
import { Effect, Exit, Layer } from "effect"

const fail = () => {
  throw new Error("trap")
}

/** Every look at it throws. */
const hostile = new Proxy(
  {},
  { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail, getOwnPropertyDescriptor: fail }
)
const halfHostile = new Proxy({}, { get: fail })
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable([], {})
  revoke()
  return proxy
}

const wrong: ReadonlyArray<readonly [string, unknown]> = [
  ["undefined", undefined],
  ["null", null],
  ["NaN", Number.NaN],
  ["-1", -1],
  ["0.5", 0.5],
  ['""', ""],
  ['"x"', "x"],
  ["true", true],
  ["{}", {}],
  ["[]", []],
  ["a function", () => undefined],
  ["a symbol", Symbol("s")],
  ["a bigint", 1n],
  ["a Proxy that throws", hostile],
  ["a Proxy whose properties throw", halfHostile],
  ["a list whose entries throw", new Proxy(["x"], { get: fail })],
  ["a revoked Proxy", revoked()]
]

/** A binding with every option that there is. */
const complete = {
  topic: "orders",
  groupId: "billing",
  cluster: "default",
  key: Serde.nullable(Serde.string),
  value: Serde.string,
  listenerType: "SINGLE",
  batchFailureStrategy: "SEEK_TO_FAILED",
  ackMode: "MANUAL",
  commitInterval: "1 second",
  concurrency: 1,
  maxPollRecords: 1,
  maxPollInterval: "1 hour",
  sessionTimeout: "45 seconds",
  heartbeatInterval: "10 seconds",
  rebalanceTimeout: "1 minute",
  fetchMaxWait: 100,
  maxPartitionFetchBytes: 1024,
  groupProtocol: "classic",
  staticMembership: false,
  partitionAssignmentStrategy: ["eventbus-cooperative-sticky"],
  autoOffsetReset: "earliest",
  isolationLevel: "read_committed",
  processingOrder: "partition",
  maxInFlight: 1,
  maxBufferedRecords: 1,
  maxBufferedBytes: 1024,
  copyCompression: "source",
  retry: RetryPolicy.tiered({ skipToTierMapping: { Down: 1 }, retryableExceptions: ["Down"] }),
  classifier: () => undefined,
  onError: { Down: Route.tier(2), Late: () => Route.retry, Slow: Route.after("1 minute") },
  orderingMode: "PER_KEY",
  perKey: { onDeadLetter: "hold", holdFor: "12 hours", maxParkedKeys: 1, maxParkedBytes: 1024 },
  onExhausted: "dead-letter",
  interceptors: [(handle: unknown) => handle],
  enrich: () => [],
  transforms: { repair: () => ({ value: "x" }) },
  adopts: ["former"],
  naming: TopicName.standard,
  missingTopics: "create",
  shutdownTimeout: "30 seconds",
  logKeys: false,
  autoStartup: true,
  circuitBreaker: {
    ...{ name: "db", slidingWindowSize: 100, slidingWindowType: "count", minimumNumberOfCalls: 10 },
    ...{ failureRateThreshold: 50, slowCallRateThreshold: 80, slowCallDuration: 5000, waitDurationInOpenState: 1000 },
    ...{ permittedNumberOfCallsInHalfOpenState: 5, automaticPauseOnOpen: true, probe: Effect.void },
    ...{ openBackoff: { multiplier: 2, maxWaitDuration: 2000 }, probeTimeout: 1000, giveUpAfter: 1000 }
  },
  deadLetter: DeadLetter.withSettings(
    DeadLetter.alertAndStore(() => Effect.void),
    {
      topicSuffix: "dead",
      topicFor: () => undefined,
      maxReplays: 3,
      headers: { spring: "plain", brokers: true },
      origins: ["old"]
    }
  ),
  idempotency: { key: () => "k", scope: "s", lease: "1 minute", retention: "1 day" },
  handler: () => Effect.void
}

/** The same for every kind of binding and every retry policy. */
const relaxed = { ...complete, orderingMode: "RELAXED_IN_RETRY", perKey: undefined }

/** The options with getters, each of which throws when it is read a second time. */
const readableOnce = (options: object): object => {
  const seen = new Set<string>()
  return Object.defineProperties(
    {},
    Object.fromEntries(
      Object.entries(options).map(([name, value]) => [
        name,
        { enumerable: true, get: (): unknown => (seen.size < seen.add(name).size ? value : fail()) }
      ])
    )
  )
}

/** Every option as a path, those inside of other options too. */
const pathsOf = (value: unknown, path: ReadonlyArray<string> = []): ReadonlyArray<ReadonlyArray<string>> => {
  const below =
    typeof value === "object" && value !== null && !Effect.isEffect(value)
      ? Object.entries(value).flatMap(([name, inner]) => pathsOf(inner, [...path, name]))
      : []
  return path.length === 0 ? below : [path, ...below]
}

const replaced = (value: unknown, [name, ...rest]: ReadonlyArray<string>, by: unknown): unknown => {
  if (name === undefined) return by
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) }
  const at = copy as Record<string, unknown>
  at[name] = replaced(at[name], rest, by)
  return copy
}

const written = (path: ReadonlyArray<string>) =>
  path.reduce((text, name) => (/^\d+$/.test(name) ? `${text}[${name}]` : text === "" ? name : `${text}.${name}`), "")

const optional = (path: string) =>
  !/^(topic|groupId|handler|transforms\.repair)$|^(key|value|naming|circuitBreaker\.openBackoff)\.|\[\d+\]|^deadLetter\.(_tag|handler|timeoutMillis|settings$)|^retry\.(blocking|tiers|consumer)/.test(
    path
  )

/** The values that the types allow in each place. */
const isLegal = (path: string, name: string): boolean => {
  if (name === "undefined" && /topicSuffix$/.test(path)) return true
  // Absent, it is longer than the backoff of the breaker; a mapping without a tier maps to none.
  if (name === "undefined" && /^(circuitBreaker\.waitDuration.*|retry\.skipToTierMapping\.Down)$/.test(path))
    return false
  if (path === "onError.Down.tier" || path.endsWith("._tag")) return false
  if (path === "onError.Slow.delayMillis") return name === "0.5"
  if (name === "undefined") return optional(path)
  const texts =
    /^(topic|groupId|cluster|key\.name|value\.name|circuitBreaker\.name|naming\.name|idempotency\.scope|deadLetter\.settings\.topicSuffix|retry\.retryableExceptions\[0\]|adopts\[0\]|deadLetter\.settings\.origins\[0\]|retry\.tiers\[\d\]\.topicSuffix)$/
  if (texts.test(path)) return name === '"x"' || (name === '""' && /\.name$/.test(path))
  if (
    /^(classifier|enrich|handler|transforms\.repair|(key|value)\.(decode|encode)|interceptors\[0\]|deadLetter\.(handler|settings\.topicFor)|idempotency\.key)$/.test(
      path
    )
  )
    return name === "a function"
  if (path === "transforms") return name === "{}" || name === "a Proxy whose properties throw"
  if (/^naming\.(retry|deadLetter)$/.test(path)) return false
  if (/^onError/.test(path))
    return name === "a function" || (path === "onError" && (name === "{}" || name === "a Proxy whose properties throw"))
  if (
    /^(staticMembership|logKeys|autoStartup|circuitBreaker\.automaticPauseOnOpen|.*\.sharesTopic|.*\.(brokers|trailJson))$/.test(
      path
    )
  )
    return name === "true"
  if (
    /^(circuitBreaker|idempotency|perKey|deadLetter\.settings|deadLetter\.settings\.headers|retry\.skipToTierMapping)$/.test(
      path
    )
  )
    return name === "{}" || (name === "a Proxy whose properties throw" && path === "retry.skipToTierMapping")
  if (/^(interceptors|adopts|deadLetter\.settings\.origins|retry\.retryableExceptions)$/.test(path))
    return name === "[]"
  if (/^retry\.blocking\.jitter$|RateThreshold$/.test(path)) return name === "0.5"
  return false
}

describe("what a binding is given", () => {
  for (const path of pathsOf(complete)) {
    const at = written(path)
    it(`ruling 38 C58 ${at} of another kind is refused with its path, or legal by its type`, () => {
      for (const [name, value] of wrong) {
        if (path.length > 1 && name === "undefined" && path[0] === "onError") continue
        // `perKey` is refused without its mode: perKey.test.ts.
        if (name === "undefined" && at === "orderingMode") continue
        const options = replaced(complete, path, value)
        const binding = Binding.make("orders", options as never)
        const issues = Binding.problems([binding]).get(0) ?? []
        if (isLegal(at, name)) assert.deepStrictEqual(issues, [], `${at}: ${name}`)
        else {
          const named = issues.some(
            (issue) => issue.path.startsWith(at) || at.startsWith(issue.path) || issue.path.startsWith(path[0]!)
          )
          assert(named, `${at}: ${name} gives ${JSON.stringify(issues)}`)
        }
      }
    })
  }

  it("the options of the test are complete, and legal", () => {
    assert.deepStrictEqual(Binding.problems([Binding.make("orders", complete as never)]).get(0), undefined)
    for (const name of Object.keys(Choices.binding)) assert.property(complete, name)
  })

  it("ruling 38 C58 each option is read once: getters that throw at a second look are the same options", () => {
    for (const option of Object.keys(complete)) {
      const wrongOne = { ...complete, [option]: Symbol("wrong") }
      const problemsOf = (options: object) => Binding.problems([Binding.make("orders", options as never)]).get(0)
      assert.deepStrictEqual(problemsOf(readableOnce(wrongOne)), problemsOf(wrongOne), option)
    }
    assert.isUndefined(Binding.problems([Binding.make("orders", readableOnce(complete) as never)]).get(0))
  })

  it("whole options, and a name, of another kind are refused by every kind of binding", () => {
    for (const make of [Binding.make, Binding.makeBatch, Binding.makeTransactional] as ReadonlyArray<
      (name: string, options: object) => Binding.Binding<unknown>
    >) {
      for (const [name, value] of wrong) {
        const binding = make("orders", value as object)
        assert.isAbove(Binding.problems([binding]).get(0)?.length ?? 0, 0, name)
        const named = make(value as string, { ...relaxed, handleBatch: () => Effect.void })
        const issues = Binding.problems([named]).get(0) ?? []
        assert.deepStrictEqual(
          issues.map(({ path }) => path),
          name === '"x"' ? [] : ["name"],
          name
        )
      }
    }
  })

  it("all refused options are reported at once, each with what is allowed", () => {
    const options = { ...complete, ackMode: "AUTO", autoStartup: "false", handler: undefined, value: "json" }
    const issues = Binding.problems([Binding.make("orders", options as never)]).get(0) ?? []
    assert.deepStrictEqual(
      issues.map(({ path, found, allowed }) => `${path}: ${found}; ${allowed.split(":")[0]}`),
      [
        "handler: undefined; a function",
        'ackMode: \'AUTO\'; "MANUAL" or "MANUAL_IMMEDIATE"',
        "value: 'json'; a serde",
        "autoStartup: 'false'; true or false"
      ]
    )
  })

  it("ruling 15 a route in the table to a tier that the binding does not have is refused", () => {
    const problems = (onError: object, retry?: RetryPolicy.RetryPolicy) =>
      (Binding.problems([Binding.make("orders", { ...relaxed, retry, onError } as never)]).get(0) ?? []).map(
        ({ path, found, allowed }) => `${path}: ${found}; ${allowed}`
      )
    for (const [route, found] of [
      [Route.tier(99), "99"],
      [Route.tier(0), "0"],
      [Route.tier(Number.NaN), "NaN"],
      [Route.tier("1" as never), "'1'"],
      [Route.retryThenTier(4), "4"]
    ] as const) {
      assert.deepStrictEqual(problems({ Down: route }), [`onError.Down: ${found}; a retry tier, 1 to 3`])
    }
    assert.deepStrictEqual(problems({ Down: Route.tier(1) }, RetryPolicy.none), [
      "onError.Down: 1; no route to a retry tier: the binding has none"
    ])
    for (const delay of [Number.NaN, -1, "soon", {}, null])
      assert.deepStrictEqual(
        problems({ Down: Route.after(delay as never) }).map((problem) => problem.replace(/: .*;/, ";")),
        ["onError.Down; a duration, 0 ms or more"]
      )
    assert.deepStrictEqual(problems({ Down: Route.after(Number.POSITIVE_INFINITY), Late: Route.deadLetter("x") }), [])
  })

  it("names with a lone surrogate or a NUL are refused", () => {
    for (const bad of ["\ud800", "a\0b"]) {
      const options = { ...complete, groupId: bad, cluster: bad, adopts: [bad], idempotency: { scope: bad } }
      const issues = Binding.problems([Binding.make(bad, options as never)]).get(0) ?? []
      assert.sameMembers(
        issues.map(({ path }) => path),
        ["name", "groupId", "idempotency.scope", "adopts[0]", "cluster"]
      )
    }
  })

  it("codecs of copies are those of records", () => {
    const compression: ReadonlyArray<ConsumerRecord.Compression | "source"> = Choices.binding.copyCompression
    assert.deepStrictEqual(compression, ["source", ...Choices.compression])
  })
})

describe("what functions beside a binding are given", () => {
  const typed = (error: unknown) =>
    error instanceof RetryPolicy.InvalidRetryPolicy ||
    error instanceof DeadLetter.InvalidDeadLetter ||
    error instanceof EventBusError.ConfigurationValidation

  for (const [title, call] of [
    ["RetryPolicy.blocking", RetryPolicy.blocking],
    ["RetryPolicy.tiered", RetryPolicy.tiered],
    ["RetryPolicy.fixedDelay", RetryPolicy.fixedDelay],
    ["tiers", (tiers: unknown) => RetryPolicy.tiered({ tiers: tiers as [] })],
    ["a tier", (tier: unknown) => RetryPolicy.tiered({ tiers: [tier as 1] })],
    ["equalDelays", (equalDelays: unknown) => RetryPolicy.tiered({ equalDelays: equalDelays as "share" })],
    ["consumer", (consumer: unknown) => RetryPolicy.tiered({ consumer: consumer as "shared" })],
    ["blocking", (blocking: unknown) => RetryPolicy.tiered({ blocking: blocking as object })],
    ["retryableExceptions", (list: unknown) => RetryPolicy.blocking({ retryableExceptions: list as [] })],
    ["DeadLetter.custom", DeadLetter.custom],
    ["DeadLetter.alertAndStore", DeadLetter.alertAndStore],
    ["alert options", (options: unknown) => DeadLetter.alertAndStore(() => Effect.void, options as object)],
    ["DeadLetter.scheduledReplay", DeadLetter.scheduledReplay],
    [
      "DeadLetter.withSettings",
      (settings: unknown) => DeadLetter.withSettings(DeadLetter.storeOnly, settings as object)
    ],
    ["a strategy", (strategy: unknown) => DeadLetter.withSettings(strategy as typeof DeadLetter.storeOnly, {})],
    ["topicFor", (topicFor: unknown) => DeadLetter.withSettings(DeadLetter.storeOnly, { topicFor } as object)],
    ["headers", (headers: unknown) => DeadLetter.withSettings(DeadLetter.storeOnly, { headers } as object)],
    ["Serde.make", Serde.make],
    ["Serde.checked", (format: unknown) => Serde.checked({} as never, format as never)],
    ["Serde.json", Serde.json],
    ["Serde.nullable", Serde.nullable]
  ] as ReadonlyArray<readonly [string, (given: unknown) => unknown]>) {
    it(`ruling 38 ${title} of another kind gives the typed error of its module`, () => {
      let refused = 0
      for (const [name, value] of wrong) {
        try {
          call(value)
        } catch (error) {
          refused++
          assert(typed(error), `${title}: ${name} throws ${String(error)}`)
          assert.match((error as Error).message, /allowed/)
        }
      }
      assert.isAtLeast(refused, 10)
    })
  }

  it("ruling 38 DeadLetter.withSettings reads what it keeps once, and what throws is told with its path", () => {
    const throwing = (name: string, rest: object = {}) =>
      Object.defineProperty({ ...rest }, name, { get: fail, enumerable: true }) as never
    const { storeOnly } = DeadLetter
    for (const name of ["topicSuffix", "topicFor", "fingerprint", "origins", "headers", "maxReplays"]) {
      const change = () => DeadLetter.withSettings(storeOnly, throwing(name))
      assert.throws(change, new RegExp(`^${name} is Symbol\\(a property that throws\\); allowed: `))
    }
    const ofStrategy = () => DeadLetter.withSettings(throwing("settings", { _tag: "StoreOnly" }), {})
    assert.throws(ofStrategy, /^deadLetter\.settings is .*; allowed: /)
    const origins = new Proxy(["old"], { get: fail })
    const ofList = () => DeadLetter.withSettings(storeOnly, { origins })
    assert.throws(ofList, /^origins is .*; allowed: a list of topic names/)
    let reads = 0
    const once = Object.defineProperty({}, "topicSuffix", { get: () => (reads++ === 0 ? "dead" : fail()) })
    assert.deepStrictEqual(DeadLetter.withSettings(storeOnly, once).settings, { topicSuffix: "dead" })
    // The guard looks at settings alone.
    assert.deepStrictEqual(DeadLetter.withSettings(throwing("other", storeOnly), throwing("other")).settings, {})
  })

  it.effect("ruling 38 a breaker, an interceptor and a store in memory of another kind are refused", () =>
    Effect.gen(function* () {
      for (const [name, value] of wrong.slice(1)) {
        const breaker = yield* Effect.exit(Effect.scoped(CircuitBreaker.make(value as object)))
        if (name !== "{}") assert(Exit.isFailure(breaker), name)
        if (name !== "{}") assert.include(String(breaker), "InvalidCircuitBreaker", name)
        for (const layer of [Interceptor.layer(value as never), IdempotencyStore.layerMemory(value as object)]) {
          const built = yield* Effect.exit(Effect.scoped(Layer.build(layer as Layer.Layer<unknown>)))
          if (name !== "{}" && name !== "a function") assert.include(String(built), "ConfigurationValidation", name)
        }
      }
    })
  )
})
