/** A Nest service on a real Kafka: on kafkajs, and with `TRANSPORT=kafka` on connections of our own. */
import "reflect-metadata"
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { EventBusModule, EventBusService, KafkaHandler } from "@eventbus/nestjs"
import { Serde } from "@eventbus/node"
import { Injectable, Module } from "@nestjs/common"
import { NestFactory } from "@nestjs/core"
import { Effect } from "effect"
import * as Bus from "../../../test/integration/bus.ts"
import * as Transport from "../../../test/transport.ts"
import { fast, quiet } from "./app.ts"

KafkaSuite.shared("a Nest service on a real Kafka", (bootstrap) => {
  Bus.story(
    bootstrap,
    "RCH-07 CLN-15 handles a record, retries it and commits it, on the transport of its options",
    () =>
      Effect.gen(function* () {
        const topic = Bus.fresh("nest-transport")
        yield* Bus.createTopic(topic)
        const seen: Array<string> = []
        @Injectable()
        class Orders {
          @KafkaHandler({ topic, groupId: topic, value: Serde.string, ...fast })
          onOrder({ value }: { readonly value: string }) {
            seen.push(value)
            if (seen.length < 3) throw new Error("down")
          }
        }
        class Root {}
        Module({
          imports: [EventBusModule.forRoot({ kafka: { brokers: bootstrap, transport: Transport.name }, log: "off" })],
          providers: [Orders]
        })(Root)
        const app = yield* Effect.acquireRelease(
          Effect.promise(() => NestFactory.createApplicationContext(Root, quiet)),
          (running) => Effect.promise(() => running.close())
        )
        const bus = app.get(EventBusService)
        yield* Effect.promise(() => bus.ready())
        yield* Effect.promise(() => bus.publish(topic, { value: "o-1" }))
        yield* Bus.until("the record is handled in its retry topic", () => seen.length === 3)
        yield* Bus.lagIsZero(topic, topic)
        assert.deepStrictEqual(seen, ["o-1", "o-1", "o-1"])
      })
  )
})
