import { expect, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { Kafka, logLevel, type SASLOptions } from "kafkajs"
import { RealKafka } from "../src/index.ts"
import * as KafkaSuite from "../src/KafkaSuite.ts"

const write = async (kafka: Kafka, topic: string): Promise<void> => {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic }], waitForLeaders: true }).finally(() => admin.disconnect())

  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, acks: -1, messages: [{ value: "written" }] })
  await producer.disconnect()
}

const writeAndRead = async (kafka: Kafka, topic: string): Promise<string | undefined> => {
  await write(kafka, topic)
  const consumer = kafka.consumer({ groupId: topic })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const value = await new Promise<string | undefined>((resolve) => {
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value?.toString()) })
  })
  await consumer.disconnect()
  return value
}

const quiet = { clientId: "kafka-runner", logLevel: logLevel.NOTHING }

KafkaSuite.shared("the run's shared Kafka", (bootstrap) => {
  it("TST-08: stores a record and returns it", async () => {
    const kafka = new Kafka({ ...quiet, brokers: [...bootstrap] })
    expect(await writeAndRead(kafka, `kafka-runner-${crypto.randomUUID()}`)).toBe("written")
  })
})

KafkaSuite.own("three brokers", { brokers: 3 }, (it) => {
  it.effect(
    "serve while one is killed, and list it again after a restart",
    () =>
      Effect.gen(function* () {
        const { bootstrap, kill, restart } = yield* RealKafka.RealKafka
        const kafka = new Kafka({ ...quiet, brokers: [...bootstrap] })
        yield* kill(2)
        // Until its session times out, the other brokers still name the dead one as controller and leader.
        yield* Effect.tryPromise(() => write(kafka, "survivors")).pipe(
          Effect.retry({ schedule: Schedule.spaced("1 second"), times: 60 })
        )
        yield* restart(2)
        const admin = kafka.admin()
        yield* Effect.promise(() => admin.connect())
        const { brokers } = yield* Effect.promise(() => admin.describeCluster())
        yield* Effect.promise(() => admin.disconnect())
        expect(brokers.map((broker) => broker.nodeId).sort()).toEqual([1, 2, 3])
      }),
    240_000
  )
})

KafkaSuite.own("SASL over TLS with ACLs", { security: "sasl_ssl", acls: true }, (it) => {
  const connect = (ca: string, mechanism: "plain" | "scram-sha-256" | "scram-sha-512", user: RealKafka.User) => ({
    ssl: { ca: [ca] },
    sasl: { mechanism, ...user } as SASLOptions
  })

  it.effect.each(["plain", "scram-sha-256", "scram-sha-512"] as const)("accepts the admin with %s", (mechanism) =>
    Effect.gen(function* () {
      const { bootstrap, ca, users } = yield* RealKafka.RealKafka
      const kafka = new Kafka({ ...quiet, brokers: [...bootstrap], ...connect(ca!, mechanism, users.admin) })
      expect(yield* Effect.promise(() => writeAndRead(kafka, `by-${mechanism}`))).toBe("written")
    })
  )

  it.effect("denies the app user operations that ACLs do not grant", () =>
    Effect.gen(function* () {
      const { bootstrap, ca, users } = yield* RealKafka.RealKafka
      const kafka = new Kafka({ ...quiet, brokers: [...bootstrap], ...connect(ca!, "plain", users.app) })
      const denied = yield* Effect.promise(() => write(kafka, "denied").catch((error) => error.errors[0].type))
      expect(denied).toBe("TOPIC_AUTHORIZATION_FAILED")
    })
  )

  it.effect(
    "reports the last log lines of a broker that ends at start",
    () =>
      Effect.gen(function* () {
        const config = { "listener.name.client.ssl.keystore.password": "wrong" }
        const error = yield* Effect.flip(RealKafka.start({ security: "ssl", config }))
        expect(error).toMatchObject({ _tag: "StartFailed", log: expect.stringMatching(/password/i) })
        expect(error.message).toContain("broker 1 ended")
      }),
    120_000
  )
})

it.effect("ACLs without users are refused", () =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(RealKafka.start({ security: "ssl", acls: true }))
    expect(error._tag).toBe("InvalidOptions")
  })
)
