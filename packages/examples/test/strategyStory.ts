/** One story of the error handling strategy, told in memory and on a real Kafka: the consumers of the file as it is, with names of topics and groups by variables. */
import { assert } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { IdempotencyStore } from "@eventbus/core"
import { TestBus } from "@eventbus/testkit"
import { Context, Effect, Layer } from "effect"
import * as Strategy from "../src/strategy/strategy.ts"
import { Invalid, Unavailable, Workers } from "../src/strategy/workers.ts"

/** Group, topic, and seconds between the attempts of a record whose work stays unavailable. */
const consumers = [
  ["cg-deal-events", "deal.events", [1, 2, 4]],
  ["cg-deposit-watcher", "escrow.commands", [5, 10, 20, 40, 60]],
  ["cg-payout-executor", "escrow.commands", [5, 10, 20, 40, 60]],
  ["cg-deposit-handler", "escrow.confirmations", [5, 10, 20, 40, 60]],
  ["cg-auto-publisher", "delivery.commands", [1, 2, 4]],
  ["cg-delivery-verifier", "delivery.commands", [1, 2, 4]],
  ["cg-delivery-handler", "delivery.results", [1, 2, 4]],
  ["cg-notification-sender", "notifications.outbox", [1, 2, 4]],
  ["cg-deadline-handler", "deal.deadlines", [1, 2, 4]],
  ["cg-reconciliation", "reconciliation.triggers", []]
] as const
type Group = (typeof consumers)[number][0]

/** The event of a topic whose first field is `id`. The store knows commands by it. */
const events = {
  "deal.events": (eventId: string) => ({ eventId, dealId: "d-1", type: "CREATED" }),
  "escrow.commands": (commandId: string) => ({ commandId, dealId: "d-1", type: "PAYOUT", amount: "25" }),
  "escrow.confirmations": (commandId: string) => ({ commandId, dealId: "d-1", type: "PAYOUT", transaction: "t-1" }),
  "delivery.commands": (commandId: string) => ({ commandId, dealId: "d-1", type: "PUBLISH" }),
  "delivery.results": (commandId: string) => ({ commandId, dealId: "d-1", outcome: "FAILED" }),
  "notifications.outbox": (notificationId: string) => ({ notificationId, chatId: "7", text: "hello" }),
  "deal.deadlines": (dealId: string) => ({ dealId, step: "deposit", deadlineMillis: 5 }),
  "reconciliation.triggers": (runId: string) => ({ runId })
} as const
const topics = Object.keys(events) as ReadonlyArray<keyof typeof events>

interface Call {
  readonly group: Group
  readonly id: string
  readonly atMillis: number
}

/** All calls of the workers. */
export class Calls extends Context.Service<Calls, Array<Call>>()("test/strategy/Calls") {}

const worker = (calls: Array<Call>, group: Group) => (event: object) =>
  Effect.clockWith((clock): Effect.Effect<void, Invalid | Unavailable> => {
    const id = String(Object.values(event)[0])
    calls.push({ group, id, atMillis: clock.currentTimeMillisUnsafe() })
    if (id === "invalid") return Effect.fail(new Invalid({ problem: "no wallet" }))
    return id === "unavailable" ? Effect.fail(new Unavailable({ what: "the ledger" })) : Effect.void
  })

const workers = Layer.effect(
  Workers,
  Effect.map(Calls, (calls) => {
    const of = (group: Group) => worker(calls, group)
    return {
      "cg-deal-events": of("cg-deal-events"),
      "cg-deposit-watcher": of("cg-deposit-watcher"),
      "cg-payout-executor": of("cg-payout-executor"),
      "cg-deposit-handler": of("cg-deposit-handler"),
      "cg-auto-publisher": of("cg-auto-publisher"),
      "cg-delivery-verifier": of("cg-delivery-verifier"),
      "cg-delivery-handler": of("cg-delivery-handler"),
      "cg-notification-sender": of("cg-notification-sender"),
      "cg-deadline-handler": of("cg-deadline-handler"),
      "cg-reconciliation": of("cg-reconciliation")
    }
  })
)

/** The ten bindings. The prefix makes the topics and groups those of one story. */
export const bindings = (prefix: string) =>
  Effect.gen(function* () {
    const env = consumers.flatMap(([group, topic]) => {
      const key = `EVENTBUS_BINDINGS_${group.toUpperCase().replaceAll("-", "_")}`
      return [
        [`${key}_TOPIC`, prefix + topic],
        [`${key}_GROUP_ID`, prefix + group]
      ]
    })
    const configuration = yield* Configuration.load(Strategy.file, { env: Object.fromEntries(env) })
    return yield* Configuration.bindings(configuration, Strategy.handlers)
  })

/** The services that the workers need. */
export const services = workers.pipe(
  Layer.provideMerge(Layer.sync(Calls, (): Array<Call> => [])),
  Layer.merge(IdempotencyStore.layerMemory())
)

/** The bytes of a text or of JSON: not all of them are events. */
const bytes = (value: unknown) => new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value))

const inTime = (seconds: ReadonlyArray<number>, waits: ReadonlyArray<number>, lateMillis: number): boolean =>
  seconds.length === waits.length &&
  seconds.every((each, index) => each * 1_000 <= waits[index]! && waits[index]! <= each * 1_000 + lateMillis)

/** Each topic gets a good event, the same command again, one of each kind of poison, and at last one whose work stays unavailable. */
export const tell = (prefix: string, lateMillis: number): Effect.Effect<void, never, TestBus.TestBus | Calls> =>
  Effect.orDie(told(prefix, lateMillis))

const told = Effect.fnUntraced(function* (prefix: string, lateMillis: number) {
  const bus = yield* TestBus.TestBus
  const calls = yield* Calls
  for (const topic of topics) {
    const event = events[topic]
    const missing = Object.fromEntries(Object.entries(event("missing")).slice(1))
    for (const value of [event("good"), event("good"), '{"id":', missing, event("invalid"), event("unavailable")])
      yield* bus.publish(prefix + topic, { key: bytes("d-1"), value: bytes(value) })
  }
  yield* bus.advance("140 seconds")
  yield* bus.settled
  for (const [group, , seconds] of consumers) {
    const own = calls.filter((call) => call.group === group)
    const times = own.filter(({ id }) => id === "unavailable").map(({ atMillis }) => atMillis)
    const waits = times.slice(1).map((at, index) => at - times[index]!)
    assert.isTrue(inTime(seconds, waits, lateMillis), `${group}: ${waits}, expected ${seconds} s`)
    const isFinancial = seconds.length === 5
    const others = own.map(({ id }) => id).filter((id) => id !== "unavailable")
    assert.deepStrictEqual(others, isFinancial ? ["good", "invalid"] : ["good", "good", "invalid"], group)
  }
  yield* deadLetters(prefix)
})

const deadLetters = Effect.fnUntraced(function* (prefix: string) {
  const bus = yield* TestBus.TestBus
  for (const topic of topics) {
    const groups = consumers.filter(([, of]) => of === topic).map(([group]) => group)
    for (const group of groups) {
      const name = groups.length > 1 ? `${prefix}${topic}.${prefix}${group}.DLT` : `${prefix}${topic}.DLT`
      const letters = yield* bus.deadLetters(name)
      const reasons = letters.map(({ dltReason, totalAttempts }) => `${dltReason} ${totalAttempts}`)
      const tries = (consumers.find(([of]) => of === group)?.[2].length ?? 0) + 1
      const poison = ["NON_RETRYABLE 0", "NON_RETRYABLE 0", "NON_RETRYABLE 1"]
      assert.deepStrictEqual(reasons, [...poison, `RETRIES_EXHAUSTED ${tries}`], name)
      for (const { record } of letters) {
        const names = new Set(record.headers.map(({ key }) => key))
        assert.isTrue(
          springHeaders.every((header) => names.has(header)),
          name
        )
      }
    }
  }
})

const springHeaders = [
  ...["exception-fqcn", "exception-message", "exception-stacktrace"],
  ...["original-offset", "original-partition", "original-timestamp", "original-topic"]
].map((name) => `kafka_dlt-${name}`)
