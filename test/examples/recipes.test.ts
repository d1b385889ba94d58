/** The recipes for Express, Fastify, Hono, Next and Nest, each as a process with a socket, on a real Kafka. */
import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect } from "effect"
import { start } from "./program.ts"

const recipes = {
  Express: "recipes/express.ts",
  Fastify: "recipes/fastify.ts",
  Hono: "recipes/hono.ts",
  Next: "recipes/next/serve.ts",
  Nest: "recipes/nest/start.ts"
}

/** Five processes start at once. */
const timeout = 180_000

const ask = (address: string, token?: string) =>
  Effect.promise(async () => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await fetch(address, { headers })
    return { status: response.status, text: await response.text() }
  })

const becomes = Effect.fnUntraced(function* (address: string, status: number) {
  for (let round = 0; round < 1_500; round++) {
    if ((yield* ask(address)).status === status) return
    yield* Effect.sleep("20 millis")
  }
  throw new Error(`${address} did not answer ${status}`)
})

KafkaSuite.shared("recipes", (bootstrap) => {
  describe.concurrent("a process in SIGTERM", () => {
    for (const [framework, file] of Object.entries(recipes))
      it.live(
        `RCH-08 ${framework}: probes, metrics and the admin API answer; at SIGTERM the handler ends, the offset is committed, and the process exits with 0`,
        () =>
          Effect.gen(function* () {
            const topic = `recipe-${framework}-${Date.now()}`
            const admin = yield* (yield* Broker.Broker).admin
            yield* admin.createTopics([{ topic, partitions: 1 }])
            const env = {
              KAFKA_BROKERS: bootstrap.join(","),
              TOPIC: topic,
              GROUP: topic,
              PORT: "0",
              ADMIN_TOKEN: "t-1"
            }
            const program = yield* start(file, env)
            yield* program.writes("listening on ")
            const address = `http://localhost:${/listening on (\d+)/.exec(program.output())?.[1]}`
            yield* becomes(`${address}/health/ready`, 200)
            assert.strictEqual((yield* ask(`${address}/health/live`)).status, 200)
            assert.include((yield* ask(`${address}/metrics`)).text, "eventbus_")
            assert.strictEqual((yield* ask(`${address}/eventbus/bindings`)).status, 401)
            assert.include((yield* ask(`${address}/eventbus/bindings`, "t-1")).text, topic)

            yield* Effect.promise(() => fetch(`${address}/orders/slow`, { method: "POST" }))
            yield* program.writes("charging slow")
            yield* program.signal("SIGTERM")
            yield* becomes(`${address}/health/ready`, 503)
            assert.notInclude(program.output(), "charged slow")
            assert.strictEqual(yield* Effect.timeout(program.exit, "20 seconds"), 0)
            assert.include(program.output(), "charged slow")
            if (framework === "Nest") assert.include(program.output(), "settled slow by an open gateway")
            const [committed] = yield* admin.committedOffsets(topic, [topic])
            assert.strictEqual(committed?.offset, 1n)
          }).pipe(Effect.provide(KafkaJs.layer({ brokers: bootstrap }))),
        timeout
      )
  })
})

describe("a Nest application", () => {
  it.live(
    "RCH-07 fails in onModuleInit: the process ends by itself, and no consumer has begun",
    () =>
      Effect.gen(function* () {
        const program = yield* start("recipes/nest/start.ts", { FAILS: "yes", PORT: "0" })
        assert.strictEqual(yield* Effect.timeout(program.exit, "60 seconds"), 1)
        assert.include(program.output(), "no database")
        assert.notInclude(program.output(), "RUNNING")
      }),
    timeout
  )
})
