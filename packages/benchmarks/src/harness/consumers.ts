/** A binding, a consumer of `createEventBus` and a bare kafkajs consumer with equal fetch settings: 1 MiB per partition, 10 MiB per fetch, at most 100 ms of waiting. */
import { Binding } from "@eventbus/core"
import { type Consumer, createEventBus } from "@eventbus/node"
import { Effect, Layer, type Scope } from "effect"
import type { ConsumerConfig, ConsumerRunConfig } from "kafkajs"
import type { Parameters, Round } from "./Benchmark.ts"
import { client } from "./kafka.ts"
import * as Transport from "./transport.ts"

/** Runs a binding until the scope closes, which drains it, commits and leaves the group. */
export const runBindings = (
  { brokers }: Pick<Round<Parameters>, "brokers">,
  bindings: ReadonlyArray<Binding.Binding<never>>,
  layer = Transport.layer
): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.asVoid(
    Layer.build(
      bindings
        .map(Binding.layer)
        .reduce((all, one) => Layer.merge(all, one))
        .pipe(Layer.provide(layer({ brokers })))
    )
  )

/** Runs a consumer of a bus until the scope closes, which drains it, commits and leaves the group. */
export const runEventBus = (
  { brokers }: Pick<Round<Parameters>, "brokers">,
  consumer: Consumer
): Effect.Effect<void, unknown, Scope.Scope> => {
  const bus = createEventBus({ kafka: { brokers }, consumers: { bus: consumer }, log: "off" })
  return Effect.asVoid(Effect.acquireRelease(Effect.tryPromise(bus.start), () => Effect.promise(bus.stop)))
}

/** Runs a bare consumer until the scope closes. */
export const runKafkaJs = (
  { brokers, topic, groupId }: Pick<Round<Parameters>, "brokers" | "topic" | "groupId">,
  run: ConsumerRunConfig | ((consumer: ReturnType<ReturnType<typeof client>["consumer"]>) => ConsumerRunConfig),
  config: Partial<ConsumerConfig> = {}
): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const consumer = client(brokers).consumer({
          groupId,
          maxBytesPerPartition: 1024 * 1024,
          maxBytes: 10 * 1024 * 1024,
          maxWaitTimeInMs: 100,
          ...config
        })
        await consumer.connect()
        await consumer.subscribe({ topics: [topic], fromBeginning: true })
        await consumer.run(typeof run === "function" ? run(consumer) : run)
        return consumer
      }),
      (consumer) => Effect.promise(() => consumer.disconnect())
    )
  )
