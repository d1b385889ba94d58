/** A service moves from one transport to the other and back, pod by pod and under load, with records in its retry topics. */
import { assert, it } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Kafka } from "@eventbus/kafka"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { Data, Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import * as Bus from "../integration/bus.ts"

class Down extends Data.TaggedError("Down") {}

type Transport = "KafkaJs" | "Kafka"

const layers = { KafkaJs: KafkaJs.layer, Kafka: Kafka.layer }

/** How often each record was handled, by transport and in which topic. */
class Ledger {
  readonly times = new Map<string, number>()
  readonly by = new Map<Transport, number>()
  retried = 0

  handle(value: string, transport: Transport, tier: number): void {
    this.times.set(value, (this.times.get(value) ?? 0) + 1)
    this.by.set(transport, (this.by.get(transport) ?? 0) + 1)
    if (tier > 0) this.retried++
  }
}

/** One record in 20 is handled in a retry topic. */
const bindingOf = (name: string, ledger: Ledger, transport: Transport) =>
  Binding.make(name, {
    ...{ topic: name, groupId: name, value: Serde.string, heartbeatInterval: "300 millis" },
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [{ delay: "300 millis", maxAttempts: 1 }]
    }),
    handler: ({ value, tier }) =>
      tier === 0 && Number(value) % 20 === 7
        ? Effect.fail(new Down())
        : Effect.sync(() => ledger.handle(value, transport, tier)),
    onError: { Down: Route.retry }
  })

/** Starts a pod. The effect that it returns stops it, as a deployment does. */
const startPod = Effect.fnUntraced(function* (
  brokers: ReadonlyArray<string>,
  name: string,
  ledger: Ledger,
  transport: Transport
) {
  const scope = yield* Scope.make()
  const pod = Binding.layer(bindingOf(name, ledger, transport)).pipe(Layer.provide(layers[transport]({ brokers })))
  yield* Layer.buildWithScope(pod, scope)
  const before = ledger.by.get(transport) ?? 0
  yield* Bus.until(`the pod on ${transport} works`, () => (ledger.by.get(transport) ?? 0) > before)
  return Scope.close(scope, Exit.void)
})

/** Publishes 200 records a second until it is told to stop; then says how many. */
const load = Effect.fnUntraced(function* (name: string) {
  const { sendAll } = yield* (yield* Broker.Broker).producer()
  let published = 0
  let isOpen = true
  const publish = Effect.gen(function* () {
    const values = Array.from({ length: 10 }, () => Buffer.from(String(published++)))
    yield* sendAll(values.map((value) => ({ topic: name, key: value, value })))
    yield* Effect.sleep("50 millis")
  })
  const running = yield* Effect.forkScoped(
    Effect.whileLoop({ while: () => isOpen, body: () => publish, step: () => {} })
  )
  return Effect.suspend(() => {
    isOpen = false
    return Effect.as(Fiber.join(running), published)
  }).pipe(Effect.map(() => published))
})

KafkaSuite.shared("a service that moves between transports", (brokers) => {
  it.live(
    "CLN-15 from KafkaJs to Kafka and back, pod by pod under load: nothing is lost, and nothing is handled twice",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("rollout")
        const ledger = new Ledger()
        yield* Bus.createTopic(name, 6)
        const stop = yield* load(name)
        const start = (transport: Transport) => startPod(brokers, name, ledger, transport)
        const running = [yield* start("KafkaJs"), yield* start("KafkaJs")]
        for (const transport of ["Kafka", "Kafka", "KafkaJs", "KafkaJs"] as const) {
          running.push(yield* start(transport))
          yield* running.shift()!
        }
        const published = yield* stop
        const all = Array.from({ length: published }, (_, index) => String(index))
        yield* Bus.until("every record is handled", () => all.every((value) => ledger.times.has(value)))
        for (const end of running) yield* end
        assert.deepStrictEqual(
          all.filter((value) => ledger.times.get(value) !== 1),
          []
        )
        assert.isAbove(ledger.retried, 0)
        assert.isAbove(ledger.by.get("Kafka") ?? 0, 0)
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(KafkaJs.layer({ brokers }), Logger.layer([])))),
    120_000
  )
})
