/**
 * Everything at once, by chance: tiers, breaker, idempotency, results, STRICT with and without halt, a consumer for the tiers, faults of the cluster, rebalances, pauses.
 * In every run each record has one outcome, in time, with the right number of attempts.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  Binding,
  type BindingOptions,
  BrokerError,
  type CircuitBreaker,
  CurrentTransaction,
  EventBusError,
  type EventBusEvent,
  IdempotencyStore,
  Outcome,
  RetryPolicy,
  Route,
  Serde
} from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect, Exit, Result } from "effect"
import { make as chanceOf, type Random } from "../../simulation/scenario/random.ts"
import {
  type App,
  advance,
  append,
  bytes,
  headersOf,
  inTime,
  runScenario,
  start,
  Turns,
  text,
  valuesOf
} from "../bus.ts"
import { Down, Invalid } from "../kinds.ts"

const kinds = ["single", "by key", "unordered", "in batches", "whole batches", "transactional"] as const
type Kind = (typeof kinds)[number]

interface Plan {
  readonly kind: Kind
  readonly isStrict: boolean
  readonly halts: boolean
  readonly hasBreaker: boolean
  readonly isOnce: boolean
  readonly asResults: boolean
  readonly blockingAttempts: number
  readonly consumer: "shared" | "separate"
  readonly settings: Pick<BindingOptions.Settings<never, never>, "concurrency" | "ackMode" | "maxPollRecords">
}

const planOf = (kind: Kind, chance: Random): Plan => {
  const isStrict = kind !== "by key" && kind !== "unordered" && chance.happens(0.3)
  return {
    kind,
    isStrict,
    halts: isStrict && chance.happens(0.5),
    hasBreaker: chance.happens(0.5),
    isOnce: kind !== "whole batches" && kind !== "transactional" && chance.happens(0.5),
    asResults: kind !== "whole batches" && chance.happens(0.4),
    blockingAttempts: chance.between(1, 3),
    consumer: chance.pick(["shared", "separate"]),
    settings: {
      concurrency: chance.between(1, 2),
      ackMode: chance.pick(["MANUAL", "MANUAL_IMMEDIATE"]),
      maxPollRecords: chance.between(1, 5)
    }
  }
}

/** Deliveries of each tier. */
const tiers = [
  { delay: "10 seconds", maxAttempts: 2 },
  { delay: "1 minute", maxAttempts: 1 }
] as const
const delays = new Map([
  ["orders.retry-1", 10_000],
  ["orders.retry-2", 60_000]
])

interface Handed {
  readonly value: string
  readonly tier: number
}
type Handle = (handed: Handed) => Effect.Effect<unknown, Down | Invalid>

const bindingOf = (plan: Plan, handle: Handle, chance: Random) => {
  const blocking = { maxAttempts: plan.blockingAttempts, initialBackoff: "1 second", jitter: 0 } as const
  const circuitBreaker: CircuitBreaker.Options = {
    minimumNumberOfCalls: 3,
    slidingWindowSize: 4,
    permittedNumberOfCallsInHalfOpenState: chance.between(1, 2),
    waitDurationInOpenState: "20 seconds",
    automaticPauseOnOpen: chance.happens(0.5)
  }
  const common = {
    topic: "orders",
    groupId: "billing",
    value: Serde.string,
    ...plan.settings,
    retry: plan.isStrict
      ? RetryPolicy.blocking(blocking)
      : RetryPolicy.tiered({ blocking, tiers, consumer: plan.consumer }),
    orderingMode: plan.isStrict ? "STRICT" : "RELAXED_IN_RETRY",
    onExhausted: plan.halts ? "halt" : "dead-letter",
    onError: { Down: Route.retry, Invalid: Route.deadLetter() },
    ...(plan.hasBreaker ? { circuitBreaker } : {})
  } as const
  const one: Handle = plan.asResults
    ? (handed) =>
        Effect.catch(handle(handed), (error) =>
          Effect.succeed(error._tag === "Down" ? Outcome.retry(error) : Outcome.failure(error))
        )
    : handle
  switch (plan.kind) {
    case "whole batches":
      return Binding.makeBatch("orders", {
        ...common,
        handleBatch: ({ deliveries }) =>
          Effect.gen(function* () {
            const results = yield* Effect.forEach(deliveries, (delivery) => Effect.result(handle(delivery)))
            const failures = results.flatMap((result, index) =>
              Result.isFailure(result) ? [{ index, error: result.failure }] : []
            )
            const [first, ...more] = failures
            if (first !== undefined) return yield* EventBusError.BatchProcessing.these([first, ...more])
          })
      })
    case "transactional":
      return Binding.makeTransactional("orders", {
        ...common,
        handler: (delivery): Effect.Effect<unknown, Down | Invalid, CurrentTransaction.CurrentTransaction> =>
          Effect.andThen(
            Effect.orDie(CurrentTransaction.send({ topic: "out", key: null, value: bytes(delivery.value) })),
            one(delivery)
          )
      })
    case "in batches":
      return Binding.make("orders", { ...common, listenerType: "BATCH", ...once(plan), handler: one })
    default:
      return Binding.make("orders", {
        ...common,
        processingOrder: plan.kind === "by key" ? "key" : plan.kind === "unordered" ? "unordered" : "partition",
        ...once(plan),
        handler: one
      })
  }
}

const once = ({ isOnce }: Plan): { readonly idempotency?: object } => (isOnce ? { idempotency: {} } : {})

const timedOut = new BrokerError.RequestTimedOut({ operation: "test", millis: 1 })
const unavailable = new BrokerError.CoordinatorUnavailable({ detail: "moves" })

const fault = (chance: Random): FaultPlan.Fault => {
  const often = 0.02 + 0.15 * chance.next()
  const when = chance.between(1, 200_000)
  return chance.pick<FaultPlan.Fault>([
    FaultPlan.chance(often, { operation: "produce" }, { _tag: "LoseResponse" }),
    FaultPlan.chance(often, { operation: "produce" }, { _tag: "Refuse", error: timedOut }),
    FaultPlan.chance(often, { operation: "produce" }, { _tag: "ApplyThenFail", error: timedOut }),
    FaultPlan.chance(often, { operation: "produce" }, { _tag: "Delay", duration: "20 seconds" }),
    FaultPlan.chance(often, { operation: "commit" }, { _tag: "Refuse", error: unavailable }),
    FaultPlan.chance(often, { operation: "commit" }, { _tag: "ApplyThenFail", error: timedOut }),
    FaultPlan.chance(often, { operation: "commit" }, { _tag: "Delay", duration: "8 seconds" }),
    FaultPlan.chance(often, { operation: "sendOffsets" }, { _tag: "Refuse", error: unavailable }),
    FaultPlan.chance(often, { operation: "endTransaction" }, { _tag: "ApplyThenFail", error: timedOut }),
    FaultPlan.chance(often, { operation: "endTransaction" }, { _tag: "Refuse", error: timedOut }),
    FaultPlan.chance(often, { operation: "admin" }, { _tag: "Refuse", error: timedOut }),
    FaultPlan.at(when, { _tag: "PartitionLost", topic: chance.pick(["orders", "orders.retry-1", "orders.retry-2"]) }),
    FaultPlan.at(when, { _tag: "SessionExpired" }),
    FaultPlan.at(when, { _tag: "ConnectionDropped" }),
    FaultPlan.at(when, { _tag: "BrokerDown", duration: "15 seconds" }),
    FaultPlan.at(when, { _tag: "Isolated", duration: "50 seconds" })
  ])
}

const partitions = [0, 1, 2]

/** The first word of a value decides how the handler treats the record. */
const words = ["fine", "fine", "slow", "flaky", "flaky", "broken", "invalid", "dies", "interrupts"] as const

/** The account of a run. */
interface Ledger {
  readonly successes: Map<string, number>
  /** Violations, as text. */
  readonly problems: Array<string>
}

const finishing: ReadonlySet<string> = new Set(["Handled", "Routed", "DeadLettered", "Skipped"])

/** Looks at what happens in one process: nothing early, nothing finished twice under one assignment. */
const watch = (clock: Clock.Clock, { problems }: Ledger) => {
  const finished = new Set<string>()
  return (event: EventBusEvent.EventBusEvent) => {
    if (event._tag !== "Started" && event._tag !== "Settled") return
    const place = `${event.topic}-${event.partition}@${event.record.offset}`
    if (event._tag === "Started") {
      const delay = delays.get(event.topic)
      const publishedMillis = Number(headersOf(event.record).get("x-eventbus-retry-timestamp"))
      if (delay !== undefined && clock.currentTimeMillisUnsafe() < publishedMillis + delay)
        problems.push(`early: ${place}`)
    } else if (finishing.has(event.settlement)) {
      const key = `${event.consumer} ${event.generation} ${place}`
      if (finished.has(key)) problems.push(`finished twice: ${key}`)
      finished.add(key)
    }
  }
}

const storm = (kind: Kind, seed: number) => {
  const chance = chanceOf(seed * 6 + kinds.indexOf(kind))
  const plan = planOf(kind, chance)
  const faults = Array.from({ length: chance.between(0, 5) }, () => fault(chance))
  const body = Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    const clock = yield* Clock.Clock
    yield* memory.createTopic("out")
    yield* memory.createTopic("orders", { partitions: partitions.length })
    const values: Array<string> = []
    for (const partition of partitions) {
      const own = Array.from({ length: 8 }, (_, index) => `${chance.pick(words)}-${partition}-${index}`)
      values.push(...own)
      yield* append("orders", partition, own)
      yield* memory.append("orders", partition, [{ key: bytes("k"), value: new Uint8Array([0xff, partition]) }])
    }
    const ledger: Ledger = { successes: new Map(), problems: [] }
    const calls = new Map<string, number>()
    let isCalm = false
    /** Where something waits for a failing record to pass, it does in the end. */
    const passes = plan.halts || plan.hasBreaker
    const handle: Handle = ({ value }) =>
      Effect.gen(function* () {
        const word = value.slice(0, value.indexOf("-"))
        const call = (calls.get(value) ?? 0) + 1
        calls.set(value, call)
        if (call > 1) yield* Effect.sleep(Math.min(call, 20) * 37)
        if (word === "slow") yield* Effect.sleep("25 seconds")
        if (word === "interrupts" && call === 1) return yield* Effect.interrupt
        if (word === "invalid") return yield* new Invalid()
        if (word === "flaky" && call <= 2) return yield* new Down()
        if (word === "broken" && !(passes && isCalm)) return yield* new Down()
        if (word === "dies" && !(passes && isCalm)) return yield* Effect.die(new TypeError(value))
        ledger.successes.set(value, (ledger.successes.get(value) ?? 0) + 1)
      })
    const launch = Effect.gen(function* () {
      const app = yield* start(bindingOf(plan, handle, chance))
      yield* app.connector.subscribe(watch(clock, ledger))
      return app
    })
    const app = yield* launch
    for (let step = 0; step < 8; step++) {
      yield* advance(chance.between(0, 30_000))
      yield* disturb(chance, app, launch)
    }
    isCalm = true
    for (let minute = 0; minute < 20; minute++) {
      yield* Effect.ignore(app.connector.resume("orders"))
      yield* advance("1 minute")
    }
    const letters = (yield* Effect.forEach(partitions, (at) => memory.log("orders.DLT", at))).flat()
    const dead = letters.map((letter) => text(letter.value))
    const { problems, successes } = ledger
    for (const value of values) {
      const isDead = dead.includes(value)
      const word = value.slice(0, value.indexOf("-"))
      const times = successes.get(value) ?? 0
      if (times === 0 && !isDead) problems.push(`lost: ${value}`)
      if (times > 1 && plan.isOnce) problems.push(`handled ${times} times: ${value}`)
      if (isDead && ["fine", "slow", "interrupts"].includes(word)) problems.push(`dead: ${value}`)
      if (times > 0 && word === "invalid") problems.push(`handled: ${value}`)
    }
    if (letters.filter(({ value }) => value?.[0] === 0xff).length < partitions.length)
      problems.push("lost: undecodable")
    const perTier = plan.isStrict ? 1 : 4
    for (const letter of letters) {
      const headers = headersOf(letter)
      if (headers.get("x-eventbus-dlt-reason") !== "RETRIES_EXHAUSTED") continue
      const attempts = Number(headers.get("x-eventbus-total-attempts"))
      if (attempts !== perTier * plan.blockingAttempts) problems.push(`${attempts} attempts: ${text(letter.value)}`)
    }
    for (const topic of plan.isStrict ? ["orders"] : ["orders", ...delays.keys()]) {
      const group = plan.consumer === "separate" && topic !== "orders" ? "billing.retry" : "billing"
      for (const at of partitions) {
        // A retry topic that could not be made at the start is made when a record needs it.
        const log = yield* Effect.exit(memory.log(topic, at))
        if (Exit.isFailure(log)) continue
        const end = log.value.at(-1)?.offset ?? -1n
        const committed = (yield* memory.committed(group, topic, at)) ?? 0n
        if (committed <= end) problems.push(`stuck: ${topic}-${at} at ${committed} of ${end + 1n}`)
      }
    }
    if (kind === "transactional") {
      const out = yield* valuesOf("out")
      for (const value of values) {
        const times = out.filter((each) => each === value).length
        const expected = dead.includes(value) ? 0 : 1
        if (times !== expected) problems.push(`in out ${times} times: ${value}`)
      }
    }
    const state = yield* app.connector.getState("orders")
    if (state !== "RUNNING") problems.push(`${state}`)
    assert.deepStrictEqual(problems, [], `${kind}, seed ${seed}: ${JSON.stringify({ plan, faults })}`)
  })
  return runScenario(body.pipe(Effect.provideService(Turns, 60), Effect.provide(IdempotencyStore.layerMemory())), {
    faults: { seed, faults }
  })
}

/** A pause, a resume, or another process that comes and goes. */
const disturb = Effect.fnUntraced(function* <E, R>(chance: Random, app: App, launch: Effect.Effect<App, E, R>) {
  const what = chance.next()
  if (what < 0.2) yield* inTime(Effect.ignore(app.connector.pause("orders")))
  else if (what < 0.5) yield* Effect.ignore(app.connector.resume("orders"))
  else if (what < 0.7) {
    const other = yield* launch
    yield* advance(chance.between(0, 60_000))
    yield* inTime(other.close)
  }
})

/** `STORMS=first:count` looks at others. */
const [first = 1, count = 6] = (process.env["STORMS"] ?? "1:6").split(":").map(Number)

describe("storms", () => {
  for (const kind of kinds) {
    it(`RTY-16 CB-11 OFF-21 DLT-01 ${kind}: each record has one outcome, in time, with the right number of attempts`, async () => {
      for (let seed = first; seed < first + count; seed++) await storm(kind, seed)
    })
  }
})
