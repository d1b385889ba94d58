import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Configuration, Handler, ResilientConsumer } from "@eventbus/config"
import { EventBusConnector, EventBusError, Outcome, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { issuesOf } from "./issues.ts"

const minimal = `{
  "KafkaConsumer": {
    "TopicName": "my-topic",
    "GroupId": "my-group",
    "BootstrapServers": "localhost:9092",
    "Error": { "TopicName": "my-topic.error" }
  }
}`

const full = `{
  "KafkaConsumer": {
    "TopicName": "orders",
    "ConsumerNumber": 5,
    "GroupId": "order-processor",
    "SchemaRegistryUrl": "http://localhost:8081",
    "BootstrapServers": "kafka-1:9092,kafka-2:9092,kafka-3:9092",
    "Error": { "TopicName": "orders.dlq" },
    "RetryPolicy": {
      "Delay": 5000,
      "RetryAttempts": 5
    }
  }
}`

const values: ResilientConsumer.Values = {
  TopicName: "orders",
  GroupId: "order-processor",
  BootstrapServers: "localhost:9092"
}

const file = (content: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "eventbus-resilient-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => {
      const path = join(folder, "appsettings.json")
      writeFileSync(path, content)
      return path
    }
  )

const definitionOf = (consumer: ResilientConsumer.ResilientConsumer) =>
  Configuration.withoutHandlers(consumer)[0]!.definition

describe("the configuration of a result-based consumer", () => {
  it.effect("RES-07 RES-08 the minimal sample loads as it is: one consumer, no retries", () =>
    Effect.gen(function* () {
      const consumer = yield* ResilientConsumer.load(yield* file(minimal))
      const [binding] = consumer.bindings
      assert.strictEqual(consumer.bindings.length, 1)
      assert.deepInclude(binding, { name: "my-topic", topic: "my-topic", groupId: "my-group", concurrency: 1 })
      assert.deepInclude(binding!.retry, { tiers: [] })
      assert.strictEqual(binding!.retry.blocking.maxAttempts, 1)
      assert.strictEqual(definitionOf(consumer).deadLetterTopic, "my-topic.error")
      assert.deepStrictEqual(
        consumer.clusters.map(({ alias, brokers }) => [alias, ...brokers]),
        [["default", "localhost:9092"]]
      )
      assert.isUndefined(consumer.schemaRegistryUrl)
    })
  )

  it.effect("RES-07 RES-08 the full sample loads as it is: each key has its meaning", () =>
    Effect.gen(function* () {
      const consumer = yield* ResilientConsumer.load(yield* file(full))
      const definition = definitionOf(consumer)
      assert.deepInclude(consumer.bindings[0], { topic: "orders", groupId: "order-processor", concurrency: 5 })
      assert.deepStrictEqual(consumer.clusters[0]!.brokers, ["kafka-1:9092", "kafka-2:9092", "kafka-3:9092"])
      assert.strictEqual(definition.deadLetterTopic, "orders.dlq")
      assert.deepStrictEqual(
        definition.tiers.topics.map(({ topic }) => topic),
        [1, 2, 3, 4, 5].map((n) => `orders.retry.${n}`)
      )
      for (const { delayMs, maxAttempts } of consumer.bindings[0]!.retry.tiers) {
        assert.isTrue(delayMs >= 5000 && delayMs < 5005, `${delayMs} ms`)
        assert.strictEqual(maxAttempts, 1)
      }
      assert.strictEqual(consumer.schemaRegistryUrl, "http://localhost:8081")
    })
  )

  it.effect("RES-07 by default the naming strategy names the error topic; any other name may be given", () =>
    Effect.gen(function* () {
      assert.strictEqual(definitionOf(yield* ResilientConsumer.decode(values)).deadLetterTopic, "orders.error")
      const elsewhere = yield* ResilientConsumer.decode({ ...values, Error: { TopicName: "failed-orders" } })
      assert.strictEqual(definitionOf(elsewhere).deadLetterTopic, "failed-orders")
    })
  )

  it.effect("RES-07 other sections of appsettings.json are ignored; a missing KafkaConsumer is a mistake", () =>
    Effect.gen(function* () {
      const beside = minimal.replace("{", '{ "Logging": { "LogLevel": { "Default": "Information" } },')
      assert.strictEqual((yield* ResilientConsumer.parse(beside)).bindings[0]!.name, "my-topic")
      assert.deepStrictEqual(yield* issuesOf(ResilientConsumer.parse("{}")), [
        "KafkaConsumer: nothing; a section KafkaConsumer at the top of the file"
      ])
    })
  )

  it.effect("RES-07 all mistakes are reported at once, by the keys and lines of the file", () =>
    Effect.gen(function* () {
      const text = [
        "{",
        '  "KafkaConsumer": {',
        '    "TopicName": "my topic",',
        '    "ConsumerNumber": 0,',
        '    "GroupID": "my-group",',
        '    "BootstrapServers": "",',
        '    "Error": { "TopicName": "a/b" },',
        '    "RetryPolicy": { "Delay": -1, "RetryAttempts": "3" }',
        "  }",
        "}"
      ].join("\n")
      const error = yield* Effect.flip(ResilientConsumer.load(yield* file(text)))
      assert.deepStrictEqual(
        error.issues.map(({ path, at }) => `${path} ${at?.line}`),
        [
          "KafkaConsumer.GroupId 2",
          "KafkaConsumer.TopicName 3",
          "KafkaConsumer.ConsumerNumber 4",
          "KafkaConsumer.GroupID 5",
          "KafkaConsumer.BootstrapServers 6",
          "KafkaConsumer.Error.TopicName 7",
          "KafkaConsumer.RetryPolicy.Delay 8",
          "KafkaConsumer.RetryPolicy.RetryAttempts 8"
        ]
      )
      assert.include(error.message, 'found "3", allowed is a whole number, 0 to 100, without quotes')
      assert.include(error.message, "found an unknown key, allowed is GroupId (did you mean that?)")
    })
  )

  it.effect("RES-07 refusals of the connector are also reported by the keys of the file", () =>
    Effect.gen(function* () {
      const same = { ...values, Error: { TopicName: "orders" } }
      const [issue] = yield* issuesOf(ResilientConsumer.decode(same))
      assert.match(issue!, /^Error\.TopicName: .*orders.*source topic/)
    })
  )

  it.effect("RES-07 an appsettings.json with comments and trailing commas loads as .NET reads it", () =>
    Effect.gen(function* () {
      const path = yield* file(`\uFEFF// orders, see the "wiki"
{
  /* all consumers: [{,}] */
  "Logging": { "LogLevel": { "Default": "Information", }, }, // ,
  "KafkaConsumer": {
    "TopicName": "orders", // the topic, "quoted"
    "GroupId": "order//processor /* not a comment */",
    "BootstrapServers": "localhost:9092" /* local */,
    "RetryPolicy": { "Delay": 5000, "RetryAttempts": 2, },
  },
}
`)
      const { bindings } = yield* ResilientConsumer.load(path)
      assert.strictEqual(bindings[0]?.topic, "orders")
      assert.strictEqual(bindings[0]?.groupId, "order//processor /* not a comment */")
      assert.strictEqual(bindings[0]?.retry.tiers.length, 2)
    })
  )

  it.effect(
    "RES-07 a mistake in a commented file has its line and column; a missing or doubled comma stays a mistake",
    () =>
      Effect.gen(function* () {
        const commented = `{ // one
  "KafkaConsumer": { /* two
    three */ "TopicName": "a b", "GroupId": "g", "BootstrapServers": "k:9092", } }`
        const refused = yield* Effect.flip(ResilientConsumer.parse(commented))
        assert.deepStrictEqual(
          refused.issues.map(({ at }) => [at?.line, at?.column]),
          [[3, 27]]
        )
        for (const text of [
          '{ "KafkaConsumer": {,} }',
          '{ "a": 1,, "b": 2 }',
          '{ "a": 1 "b": 2 }',
          "{ /* open",
          "{} /* open",
          "{} /*/",
          "{ / }"
        ]) {
          const { message } = yield* Effect.flip(ResilientConsumer.parse(text))
          assert.include(message, "something that is not JSON", text)
        }
      })
  )

  it.effect("RES-07 a file that is missing or not JSON is refused with its name", () =>
    Effect.gen(function* () {
      const missing = yield* Effect.flip(ResilientConsumer.load("/nowhere/appsettings.json"))
      assert.include(missing.message, "/nowhere/appsettings.json: found no such file")
      const broken = yield* Effect.flip(ResilientConsumer.load(yield* file("{ KafkaConsumer: 1 }")))
      assert.include(broken.message, "something that is not JSON")
    })
  )
})

/** Which attempt of which record ran, and what became of the topics. */
const run = Effect.fnUntraced(function* (
  layer: (handler: Handler.Handler<never>) => ReturnType<typeof ResilientConsumer.layerValues<never>>
) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.append(
    "orders",
    0,
    ["good", "later", "bad"].map((value) => ({ value: new TextEncoder().encode(JSON.stringify(value)) }))
  )
  const calls: Array<string> = []
  const handler = Handler.make({
    value: Serde.json(Schema.String),
    handler: ({ value, tier }) =>
      Effect.sync(() => {
        calls.push(`${value} ${tier}`)
        if (value === "bad") return Outcome.failure()
        return value === "later" ? Outcome.retry() : Outcome.success
      })
  })
  const context = yield* Layer.build(layer(handler))
  const connector = Context.get(context, EventBusConnector.EventBusConnector)
  for (let second = 0; second < 30; second++) {
    yield* TestClock.adjust("1 second")
    yield* Effect.repeat(Effect.yieldNow, { times: 300 })
  }
  const letters = (yield* memory.log("orders.error", 0)).map(({ value }) => new TextDecoder().decode(value!))
  return { calls, letters, committed: yield* memory.committed("order-processor", "orders", 0), connector }
})

describe("a result-based consumer in one step", () => {
  const retried = { ...values, RetryPolicy: { Delay: 5000, RetryAttempts: 3 } }
  const ways: ReadonlyArray<
    readonly [
      string,
      (
        handler: Handler.Handler<never>
      ) => Effect.Effect<ReturnType<typeof ResilientConsumer.layerValues<never>>, never, Scope.Scope>
    ]
  > = [
    ["code", (handler) => Effect.succeed(ResilientConsumer.layerValues(retried, handler))],
    [
      "a file",
      (handler) =>
        Effect.map(file(JSON.stringify({ KafkaConsumer: retried })), (path) =>
          ResilientConsumer.layerFile(path, handler)
        )
    ]
  ]

  it.effect.each(ways)("RES-09 from %s: the handler runs, retries walk the topics, failures are stored", ([, way]) =>
    Effect.gen(function* () {
      const { calls, letters, committed } = yield* run((handler) => Layer.unwrap(way(handler)))
      assert.deepStrictEqual(calls, ["good 0", "later 0", "bad 0", "later 1", "later 2", "later 3"])
      assert.deepStrictEqual(letters, ['"bad"', '"later"'])
      assert.strictEqual(committed, 3n)
    }).pipe(Effect.provide(MemoryBroker.layer()))
  )

  it.effect(
    "RES-07 a SchemaRegistryUrl with a handler for JSON is refused before anything starts; a function gets the URL",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const consumer = yield* ResilientConsumer.parse(full)
        const handler = Handler.make({ value: Serde.json(Schema.String), handler: () => Effect.void })
        const error = yield* Effect.flip(Layer.build(ResilientConsumer.layer(consumer, handler)))
        assert.instanceOf(error, EventBusError.ConfigurationValidation)
        assert.deepStrictEqual(
          (error as EventBusError.ConfigurationValidation).issues.map(({ path, found }) => `${path} ${found}`),
          ["KafkaConsumer.SchemaRegistryUrl a URL (not shown)"]
        )
        assert.include(error.message, "Avro needs a decoder of its own")
        const urls: Array<string | undefined> = []
        const context = yield* Layer.build(
          ResilientConsumer.layer(consumer, (url) => {
            urls.push(url)
            return handler
          })
        )
        assert.deepStrictEqual(urls, ["http://localhost:8081"])
        const snapshot = yield* Context.get(context, EventBusConnector.EventBusConnector).listBindings
        assert.deepStrictEqual(
          snapshot.map(({ name }) => name),
          ["orders"]
        )
      }).pipe(Effect.provide(MemoryBroker.layer()))
  )

  it.effect("RES-07 RES-08 with the full sample, a retried record passes five topics and ends in the error topic", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.append("orders", 0, [{ value: new TextEncoder().encode("later") }])
      const handler = Handler.make({ value: Serde.string, handler: () => Effect.succeed(Outcome.retry()) })
      yield* Layer.build(ResilientConsumer.layer(yield* ResilientConsumer.parse(full), () => handler))
      for (let second = 0; second < 30; second++) {
        yield* TestClock.adjust("1 second")
        yield* Effect.repeat(Effect.yieldNow, { times: 300 })
      }
      for (const topic of [...[1, 2, 3, 4, 5].map((n) => `orders.retry.${n}`), "orders.dlq"]) {
        assert.strictEqual((yield* memory.log(topic, 0)).length, 1, topic)
      }
      for (const topic of ["orders", ...[1, 2, 3, 4, 5].map((n) => `orders.retry.${n}`)]) {
        assert.strictEqual(yield* memory.committed("order-processor", topic, 0), 1n, topic)
      }
    }).pipe(Effect.provide(MemoryBroker.layer()))
  )

  it.effect(
    "RES-11 the function that makes the handler may require services, and may fail before anything starts",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.append("orders", 0, [{ value: new TextEncoder().encode("ORDER") }])
        const calls: Array<string> = []
        const consumer = yield* ResilientConsumer.decode({ ...values, SchemaRegistryUrl: "http://localhost:8081" })
        const byRegistry = (url: string | undefined) =>
          Effect.map(Registry, ({ decode }) =>
            Handler.make({
              value: Serde.make({ name: `by ${url}`, decode, encode: () => new Uint8Array() }),
              handler: ({ value }) => Effect.sync(() => calls.push(value))
            })
          )
        const lower = Layer.succeed(Registry, { decode: (bytes) => new TextDecoder().decode(bytes).toLowerCase() })
        yield* Layer.build(ResilientConsumer.layer(consumer, byRegistry).pipe(Layer.provide(lower)))
        yield* Effect.repeat(Effect.yieldNow, { times: 300 })
        assert.deepStrictEqual(calls, ["order"])
        const refused = ResilientConsumer.layer<never, string>(consumer, () => Effect.fail("no registry"))
        assert.strictEqual(yield* Effect.flip(Layer.build(refused)), "no registry")
      }).pipe(Effect.provide(MemoryBroker.layer()))
  )
})

class Registry extends Context.Service<Registry, { readonly decode: (bytes: Uint8Array) => string }>()("Registry") {}
