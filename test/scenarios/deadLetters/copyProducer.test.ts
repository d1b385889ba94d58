/** How copies are published, to retry topics and to the dead letter topic alike: what the connector asks of its producer, and how long it insists. */
import { assert, describe } from "@effect/vitest"
import { Broker, BrokerError } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect, Result } from "effect"
import { advance, append, headersOf, scenario, start, text, until } from "../bus.ts"
import { Down, Invalid, kinds } from "../kinds.ts"

const { transactional, ...publishing } = kinds

const setUp = Effect.fnUntraced(function* (count: number) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "out", "orders.retry-1", "orders.retry-2", "orders.DLT"]) {
    yield* memory.createTopic(topic)
  }
  const values = Array.from({ length: count }, (_, index) => String(index))
  yield* append("orders", 0, values)
  return { memory, values }
})

/** A broker that knows what its producers were asked for, and what they published. It refuses copies while `isRefused` says so. */
const watched = (broker: Broker.Broker["Service"], isRefused: () => boolean = () => false) => {
  const asked: Array<Broker.ProducerOptions> = []
  const topics = new Set<string>()
  let refusals = 0
  const full = new BrokerError.UnexpectedBrokerError({
    ...{ operation: "write to", code: "NOT_ENOUGH_REPLICAS", detail: "two of three replicas are away", retryable: true }
  })
  const refuses = (topic: string): boolean => {
    topics.add(topic)
    if (!isRefused()) return false
    refusals++
    return true
  }
  const through = (producer: Broker.Producer): Broker.Producer => ({
    ...producer,
    send: (record) => (refuses(record.topic) ? Effect.fail(full) : producer.send(record)),
    sendEach: (records, onAnswer) =>
      Effect.suspend(() => {
        if (!refuses(records[0]!.topic)) return producer.sendEach(records, onAnswer)
        for (const index of records.keys()) onAnswer(index, Result.fail(full))
        return Effect.void
      })
  })
  const service: Broker.Broker["Service"] = {
    ...broker,
    producer: (options = {}) =>
      Effect.suspend(() => {
        asked.push(options)
        return Effect.map(broker.producer(options), through)
      })
  }
  return { service, asked, topics, refusals: () => refusals }
}

/** The values of a topic with the number of attempts that each copy tells of. */
const copiesIn = (topic: string) =>
  Effect.map(
    Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.log(topic, 0)),
    (records) => records.map((record) => `${text(record.value)}/${headersOf(record).get("x-eventbus-total-attempts")}`)
  )

/** Of three requests to publish one gets lost, the answer to the next one too, and the third one is answered. */
const losses = (requests: number): ReadonlyArray<FaultPlan.Fault> =>
  Array.from({ length: requests }, (_, index) => index + 1).flatMap((nth) =>
    nth % 3 === 0
      ? []
      : [FaultPlan.nth(nth, { operation: "produce" }, { _tag: nth % 3 === 1 ? "LoseRequest" : "LoseResponse" })]
  )

describe("the producer of copies", () => {
  for (const [kind, bindingOf] of Object.entries(publishing)) {
    scenario(
      `DLT-01 ${kind}: copies for tiers and dead letters have one producer, which is idempotent with acks=all`,
      () =>
        Effect.gen(function* () {
          const { memory } = yield* setUp(2)
          const broker = watched(memory.broker)
          const handle = ({ value }: { readonly value: string | null }) =>
            Effect.fail(value === "0" ? new Down() : new Invalid())
          const app = yield* Effect.provideService(start(bindingOf({ handle })), Broker.Broker, broker.service)
          const isDone = () => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length === 2
          yield* until(isDone, "30 seconds")
          assert.deepStrictEqual(
            broker.asked.map(({ acks, idempotent }) => ({ acks, idempotent })),
            [{ acks: "all", idempotent: true }]
          )
          assert.deepStrictEqual([...broker.topics].sort(), ["orders.DLT", "orders.retry-1", "orders.retry-2"])
          // Three deliveries in each of two tiers, one attempt each: the third delivery in the last tier is the seventh attempt.
          assert.deepStrictEqual(yield* copiesIn("orders.DLT"), ["1/1", "0/7"])
        })
    )

    scenario(`DLT-01 DLT-02 ${kind}: a copy that is refused a thousand times is published once when it is taken`, () =>
      Effect.gen(function* () {
        const { memory } = yield* setUp(2)
        let isRefused = true
        const broker = watched(memory.broker, () => isRefused)
        const handle = ({ value, tier }: { readonly value: string | null; readonly tier: number }) =>
          value === "0" && tier === 1 ? Effect.void : Effect.fail(value === "0" ? new Down() : new Invalid())
        const app = yield* Effect.provideService(start(bindingOf({ handle })), Broker.Broker, broker.service)
        for (let hour = 0; hour < 6; hour++) yield* advance("30 minutes")
        assert.deepStrictEqual([yield* copiesIn("orders.retry-1"), yield* copiesIn("orders.DLT")], [[], []])
        assert.isAbove(broker.refusals(), 1_000)
        assert.strictEqual((yield* memory.committed("billing", "orders", 0)) ?? 0n, 0n)
        isRefused = false
        yield* until(() => app.of("Settled").some(({ settlement }) => settlement === "DeadLettered"), "5 seconds")
        yield* advance("1 minute")
        assert.deepStrictEqual(yield* copiesIn("orders.retry-1"), ["0/1"])
        assert.deepStrictEqual(yield* copiesIn("orders.DLT"), ["1/1"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
      })
    )
  }

  for (const [kind, bindingOf] of Object.entries({ ...publishing, transactional })) {
    scenario(
      `DLT-01 ${kind}: two of three requests or answers get lost, and each copy is there once, in the order of its records`,
      () =>
        Effect.gen(function* () {
          const { memory, values } = yield* setUp(8)
          const app = yield* start(bindingOf({ handle: () => Effect.fail(new Down()) }))
          const isDone = () =>
            app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length === values.length
          yield* until(isDone, "1 minute")
          const firstCopies = (yield* copiesIn("orders.retry-1")).filter((copy) => copy.endsWith("/1"))
          assert.deepStrictEqual(
            firstCopies,
            values.map((value) => `${value}/1`)
          )
          assert.deepStrictEqual(
            [...(yield* copiesIn("orders.DLT"))].sort(),
            values.map((value) => `${value}/7`)
          )
          for (const topic of ["orders.retry-1", "orders.retry-2"]) {
            assert.lengthOf(yield* memory.log(topic, 0), 3 * values.length)
          }
        }),
      { requestTimeout: "1 second", faults: FaultPlan.make(losses(300)) }
    )
  }
})
