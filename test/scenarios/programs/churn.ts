/**
 * Registers a binding, lets it handle a record, and destroys it, many times. Prints what the process holds after a tenth of the rounds and at the end, as
 * one line of JSON each. On the Kafka that `KAFKA_BROKERS` names, else on one in memory. Run with `--expose-gc`.
 *
 *   node --expose-gc test/scenarios/programs/churn.ts 1000
 */
import { Binding, Broker, EventBusConnector, RetryPolicy, Serde } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import { MemoryBroker } from "@eventbus/testkit"
import { Config, Deferred, Effect, Layer, Metric, Option } from "effect"

const rounds = Number(process.argv[2])
const topic = `churn-${process.pid}`

const round = Effect.fnUntraced(function* (value: string) {
  const connector = yield* EventBusConnector.EventBusConnector
  const handled = yield* Deferred.make<void>()
  yield* connector.register(
    Binding.make("churn", {
      topic,
      groupId: topic,
      value: Serde.string,
      retry: RetryPolicy.tiered(),
      circuitBreaker: {},
      handler: (delivery) => (delivery.value === value ? Deferred.succeed(handled, undefined) : Effect.void)
    })
  )
  const producer = yield* (yield* Broker.Broker).producer()
  yield* producer.send({ topic, key: null, value: new TextEncoder().encode(value) })
  yield* Deferred.await(handled)
  yield* connector.destroy("churn")
}, Effect.scoped)

/** After what was closed is gone: sockets end a moment later. */
const held = Effect.gen(function* () {
  yield* Effect.sleep("1 second")
  globalThis.gc?.()
  const series = yield* Metric.snapshot
  const fibers = series.find(({ id }) => id === "child_fibers_active")
  const resources = process.getActiveResourcesInfo()
  const count = (kind: string) => resources.filter((each) => each === kind).length
  return {
    fibers: fibers?.type === "Gauge" ? Number(fibers.state.value) : undefined,
    timers: count("Timeout"),
    sockets: count("TCPSocketWrap"),
    series: series.length,
    heapBytes: process.memoryUsage().heapUsed
  }
})

const program = Effect.gen(function* () {
  const admin = yield* (yield* Broker.Broker).admin
  yield* admin.createTopics([{ topic, partitions: 2 }])
  for (let index = 1; index <= rounds; index++) {
    yield* round(`v${index}`)
    if (index === Math.ceil(rounds / 10) || index === rounds) console.log(JSON.stringify(yield* held))
  }
  const mine = (yield* admin.listTopics).filter((name) => name.startsWith(topic))
  yield* Effect.ignore(admin.deleteTopics(mine))
})

const Kafka = Layer.unwrap(
  Effect.map(
    Config.option(Config.String("KAFKA_BROKERS")),
    Option.match({
      onSome: (list) => KafkaJs.layer({ brokers: list.split(",") }),
      onNone: (): Layer.Layer<Broker.Broker> => MemoryBroker.layer()
    })
  )
)

program.pipe(
  Effect.scoped,
  Effect.provide(Layer.provideMerge(EventBusConnector.layer, Kafka)),
  Metric.enableRuntimeMetrics,
  Effect.runPromise
)
