import { writeFileSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { MessagingConfiguration } from "@eventbus/config"
import { Effect } from "effect"

const sample = `# Required — activates all Kafka beans
spring.kafka.bootstrap-servers=localhost:9092

spring.kafka.consumer.group-id=unraveldocs-group
spring.kafka.consumer.auto-offset-reset=earliest
spring.kafka.consumer.enable-auto-commit=false
spring.kafka.producer.retries=3
spring.kafka.producer.acks=all
spring.kafka.producer.batch-size=16384
spring.kafka.producer.linger-ms=5
spring.kafka.producer.buffer-memory=33554432

messaging.enabled=true
messaging.defaultBroker=KAFKA
messaging.kafka.consumer.concurrency=3
messaging.kafka.consumer.maxPollRecords=500
messaging.kafka.consumer.sessionTimeoutMs=30000
messaging.kafka.consumer.heartbeatIntervalMs=10000
messaging.kafka.producer.sendTimeoutSeconds=30
messaging.kafka.producer.transactionalEnabled=false
messaging.kafka.retry.maxAttempts=3
messaging.kafka.retry.initialIntervalMs=1000
messaging.kafka.retry.multiplier=2.0
messaging.kafka.retry.maxIntervalMs=30000
messaging.kafka.retry.retryTopicsEnabled=true
`

const issuesOf = (text: string, options: MessagingConfiguration.ParseOptions = {}) =>
  Effect.map(Effect.flip(MessagingConfiguration.parse(text, options)), ({ issues }) =>
    issues.map(({ path, found, at }) => `${at?.line}: ${path} ${found}`)
  )

describe("settings of messaging from files", () => {
  it.effect("MSG-12 MSG-13 MSG-14 MSG-15 MSG-18 MSG-19 an empty file has the seed's defaults", () =>
    Effect.gen(function* () {
      const { kafka, ...rest } = yield* MessagingConfiguration.parse("")
      assert.deepStrictEqual(rest, {
        ...{ enabled: true, defaultBroker: "KAFKA" },
        rabbitmq: { enabled: false, exchangePrefix: "unraveldocs", queuePrefix: "unraveldocs" }
      })
      assert.deepStrictEqual(kafka, {
        ...{ enabled: true, topicPrefix: "unraveldocs", groupId: "unraveldocs-group", bootstrapServers: undefined },
        settings: {
          ...{ defaultPartitions: 3, defaultReplicationFactor: 1, defaultRetention: 604_800_000 },
          consumer: {
            ...{ concurrency: 3, maxPollRecords: 500, sessionTimeout: 30_000, heartbeatInterval: 10_000 },
            autoOffsetReset: "earliest"
          },
          producer: {
            ...{ acks: "all", idempotent: true, linger: 5, maxBatchBytes: 16_384, sendTimeout: 30_000 },
            ...{ transactionalEnabled: false, transactionalIdPrefix: "unraveldocs-tx-" }
          },
          retry: {
            ...{ maxAttempts: 3, initialInterval: 1_000, multiplier: 2, maxInterval: 30_000, retryTopicsEnabled: true }
          }
        }
      })
    })
  )

  it.effect("MSG-17 the reference sample loads: properties, YAML and JSON give the same", () =>
    Effect.gen(function* () {
      const properties = yield* MessagingConfiguration.parse(sample)
      assert.deepStrictEqual(properties.kafka.bootstrapServers, ["localhost:9092"])
      const data = {
        spring: {
          kafka: {
            "bootstrap-servers": "localhost:9092",
            consumer: { "group-id": "unraveldocs-group", "auto-offset-reset": "earliest", "enable-auto-commit": false },
            producer: { retries: 3, acks: "all", "batch-size": 16384, "linger-ms": 5, "buffer-memory": 33554432 }
          }
        },
        messaging: { defaultBroker: "KAFKA", kafka: { retry: { "max-attempts": 3, multiplier: 2 } } }
      }
      const text = JSON.stringify(data)
      for (const format of ["json", "yaml"] as const) {
        assert.deepStrictEqual(yield* MessagingConfiguration.parse(text, { format }), properties)
      }
      assert.deepStrictEqual(yield* MessagingConfiguration.decode(data), properties)
    })
  )

  it.effect("MSG-16 bootstrap servers without a value are none", () =>
    Effect.gen(function* () {
      const text = "spring.kafka.bootstrap-servers=${KAFKA:}\n"
      for (const env of [{}, { KAFKA: "" }, { KAFKA: " " }]) {
        const { kafka } = yield* MessagingConfiguration.parse(text, { env })
        assert.isUndefined(kafka.bootstrapServers)
      }
    })
  )

  it.effect("MSG-17 a file is read by its name, other roots are left alone, and variables are filled in", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.promise(() => mkdtemp(join(tmpdir(), "messaging-")))
      const path = join(folder, "application.properties")
      writeFileSync(
        path,
        "server.port=80\nspring.datasource.url=x\nspring.kafka.bootstrap-servers=${KAFKA:kafka-1:9092, kafka-2:9092}\n"
      )
      const { kafka } = yield* MessagingConfiguration.load(path, { env: {} })
      assert.deepStrictEqual(kafka.bootstrapServers, ["kafka-1:9092", "kafka-2:9092"])
      const missing = yield* Effect.flip(MessagingConfiguration.load(join(folder, "none.yaml")))
      assert.include(missing.message, "no such file")
    })
  )

  it.effect("continuation lines, unicode escapes, comments and separators of .properties", () =>
    Effect.gen(function* () {
      const text = [
        "! a comment \\",
        "messaging.kafka.topicPrefix : doc\\u0075ments",
        "  spring.kafka.bootstrap-servers = kafka-1:9092,\\",
        "      kafka-2:9092",
        "",
        "messaging.kafka.producer.transactionalIdPrefix tx\\ \\=\\tid\\\\",
        "messaging.kafka.consumer.concurrency=\\",
        "",
        "messaging.rabbitmq.exchangePrefix=\\u00e4\\:\\#",
        "messaging.rabbitmq.queuePrefix=docs\\",
        "  #1"
      ].join("\r\n")
      const error = yield* Effect.flip(MessagingConfiguration.parse(text))
      assert.deepStrictEqual(
        error.issues.map(({ path, at }) => [path, at?.line]),
        [["messaging.kafka.consumer.concurrency", 7]]
      )
      const { kafka, rabbitmq } = yield* MessagingConfiguration.parse(
        text.replace("concurrency=\\", "concurrency=\\\r\n 7\\")
      )
      assert.deepStrictEqual(kafka.bootstrapServers, ["kafka-1:9092", "kafka-2:9092"])
      assert.strictEqual(kafka.topicPrefix, "documents")
      assert.strictEqual(kafka.settings.producer.transactionalIdPrefix, "tx =\tid\\")
      assert.deepStrictEqual([kafka.settings.consumer.concurrency, rabbitmq.exchangePrefix], [7, "ä:#"])
      assert.strictEqual(rabbitmq.queuePrefix, "docs#1")
    })
  )

  it.effect("every mistake is told at once, with its line: unknown and duplicate keys, values out of range", () =>
    Effect.gen(function* () {
      const issues = yield* issuesOf(
        [
          "messaging.kafka.retry.maxAttempts=0",
          "messaging.kafka.retry.multiplyer=2",
          "spring.kafka.producer.acks=0",
          "spring.kafka.consumer.enable-auto-commit=true",
          "messaging.kafka.consumer.concurrency=3",
          "messaging.kafka.consumer.concurrency=4",
          "spring.kafka.producer.linger-ms=soon",
          "spring.kafka.bootstrap-servers=nowhere"
        ].join("\n")
      )
      assert.deepStrictEqual(
        issues.map((line) => line.split(" ").slice(0, 2).join(" ")),
        [
          "1: messaging.kafka.retry.maxAttempts",
          "2: messaging.kafka.retry.multiplyer",
          "3: spring.kafka.producer.acks",
          "4: spring.kafka.consumer.enableAutoCommit",
          "6: messaging.kafka.consumer.concurrency",
          "7: spring.kafka.producer.lingerMs",
          "8: spring.kafka.bootstrapServers"
        ]
      )
      assert.include(issues[4], "in line 5, a duplicate")
    })
  )

  it.effect("a key with a value and with keys below it, and a broken escape, are named with their line", () =>
    Effect.gen(function* () {
      const issues = yield* issuesOf(
        "messaging.kafka=x\nmessaging.kafka.enabled=true\nmessaging.rabbitmq.queuePrefix=\\u00x1"
      )
      assert.deepStrictEqual(issues, [
        "2:  the key messaging.kafka with a value and with keys below it",
        '3:  the escape "\\\\u00x1"'
      ])
    })
  )

  it.effect("SEC-01 an address with a user and a password is refused without them", () =>
    Effect.gen(function* () {
      for (const [format, text] of [
        ["properties", "spring.kafka.bootstrap-servers=ann:hunter2@kafka:9092"],
        ["yaml", "spring: { kafka: { bootstrap-servers: 'ann:hunter2@kafka:9092' } }"]
      ] as const) {
        assert.deepStrictEqual(yield* issuesOf(text, { format }), [
          '1: spring.kafka.bootstrapServers "<redacted>@kafka:9092"'
        ])
      }
    })
  )

  it.effect("rules between two settings: the longest wait and the first one, session and heartbeat", () =>
    Effect.gen(function* () {
      const issues = yield* issuesOf(
        "messaging.kafka.retry.maxIntervalMs=500\nmessaging.kafka.consumer.sessionTimeoutMs=20s\n"
      )
      assert.deepStrictEqual(issues, [
        "1: messaging.kafka.retry.maxIntervalMs 500 ms",
        "2: messaging.kafka.consumer.sessionTimeoutMs 20000 ms"
      ])
    })
  )

  it.effect(
    "a rule between two valid settings is told beside other mistakes, and not where one of its own is wrong",
    () =>
      Effect.gen(function* () {
        const rules = ["messaging.kafka.retry.maxIntervalMs=500", "messaging.kafka.consumer.sessionTimeoutMs=20s"]
        assert.deepStrictEqual(yield* issuesOf([...rules, "spring.kafka.producer.acks=0"].join("\n")), [
          "1: messaging.kafka.retry.maxIntervalMs 500 ms",
          "2: messaging.kafka.consumer.sessionTimeoutMs 20000 ms",
          '3: spring.kafka.producer.acks "0"'
        ])
        assert.deepStrictEqual(yield* issuesOf([...rules, "messaging.kafka.retry.initialIntervalMs=soon"].join("\n")), [
          "2: messaging.kafka.consumer.sessionTimeoutMs 20000 ms",
          '3: messaging.kafka.retry.initialIntervalMs "soon"'
        ])
      })
  )

  it.effect("each repetition of a key is told", () =>
    Effect.gen(function* () {
      const key = "messaging.kafka.retry"
      const issues = yield* issuesOf(
        [`${key}.maxAttempts=1`, `${key}.max-attempts=2`, `${key}.maxAttempts=3`].join("\n")
      )
      assert.deepStrictEqual(
        issues.map((line) => line.split(" ")[0]),
        ["2:", "3:"]
      )
    })
  )

  it.effect(
    "a root that is close to messaging or spring.kafka is told with what was meant; others are left alone",
    () =>
      Effect.gen(function* () {
        const slips = ["mesaging.enabled=true", "spring.kafak.consumer.group-id=a", "sprng.kafka.bootstrap-servers=a:1"]
        const { issues } = yield* Effect.flip(MessagingConfiguration.parse(slips.join("\n")))
        assert.deepStrictEqual(
          issues.map(({ path, allowed }) => `${path}: ${allowed}`),
          [
            "mesaging: messaging (did you mean that?)",
            "spring.kafak: spring.kafka (did you mean that?)",
            "sprng: spring (did you mean that?)"
          ]
        )
        const foreign = [
          "spring.data.a=1",
          "spring.task.a=1",
          "spring.jpa.a=1",
          "spring.messages.a=1",
          "management.a=1"
        ]
        yield* MessagingConfiguration.parse([...foreign, "spring.mvc.a=1", "string.a=1", "message=x"].join("\n"))
      })
  )

  it.effect("sections of Spring that are not read are refused with the place of their settings", () =>
    Effect.gen(function* () {
      const keys = ["security.protocol=SSL", "listener.concurrency=3", "properties.a=b", "client-id=x"]
      const text = keys.map((key) => `spring.kafka.${key}`).join("\n")
      const { issues } = yield* Effect.flip(MessagingConfiguration.parse(text))
      assert.deepStrictEqual(
        issues.map(({ path }) => path),
        ["spring.kafka.security", "spring.kafka.listener", "spring.kafka.properties", "spring.kafka.client-id"]
      )
      assert.include(issues[1]?.allowed, "messaging.kafka.consumer.concurrency")
    })
  )

  it.effect("a text close to an allowed one is hinted at in .properties, too, and never from a variable", () =>
    Effect.gen(function* () {
      const allowedOf = (text: string, env = {}) =>
        Effect.map(Effect.flip(MessagingConfiguration.parse(text, { env })), ({ issues }) => issues[0]?.allowed)
      const key = "spring.kafka.consumer.auto-offset-reset"
      assert.include(yield* allowedOf(`${key}=earliset`), "did you mean earliest?")
      assert.notInclude(yield* allowedOf(`${key}=\${RESET}`, { RESET: "earliset" }), "did you mean")
    })
  )
})
