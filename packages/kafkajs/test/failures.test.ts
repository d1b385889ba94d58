/** Failures of connecting, and refusals of a broker: each is reported by its type, within bounded time. */
import { assert, describe, it } from "@effect/vitest"
import { Broker, type BrokerError } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import type { KafkaJs } from "@eventbus/kafkajs"
import { Deferred, Effect, Fiber, Queue, Redacted, type Scope } from "effect"
import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, Kafka, ResourcePatternTypes } from "kafkajs"
import * as Transport from "../../../test/transport.ts"

type Use<A> = (broker: Broker.Broker["Service"]) => Effect.Effect<A, BrokerError.BrokerError, Scope.Scope>

const listTopics: Use<ReadonlyArray<string>> = ({ admin }) => Effect.flatMap(admin, (one) => one.listTopics)

const withBroker = <A>(options: KafkaJs.Options, use: Use<A>) =>
  Effect.scoped(Effect.flatMap(Broker.Broker, use)).pipe(
    Effect.provide(Transport.layer(options)),
    Effect.timeoutOrElse({ duration: "20 seconds", orElse: () => Effect.die(new Error("took too long")) })
  )

/** Allows the app user to read a topic. The port has no such request, so kafkajs sends it. */
const grantToApp = ({ bootstrap, ca, users }: RealKafka.Cluster, topic: string) =>
  Effect.promise(async () => {
    const { username, password } = users.admin
    const sasl = { mechanism: "plain", username, password } as const
    const admin = new Kafka({ brokers: [...bootstrap], ssl: { ca: [ca ?? ""] }, sasl, logLevel: 0 }).admin()
    await admin.connect()
    const acl = { principal: "User:app", host: "*", resourceName: topic }
    await admin.createAcls({
      acl: [
        {
          ...acl,
          resourceType: AclResourceTypes.TOPIC,
          resourcePatternType: ResourcePatternTypes.LITERAL,
          operation: AclOperationTypes.READ,
          permissionType: AclPermissionTypes.ALLOW
        }
      ]
    })
    await admin.disconnect()
  })

const failureOf = <A>(options: KafkaJs.Options, use: Use<A>) => Effect.flip(withBroker(options, use))

describe("without a broker", () => {
  it.live("connecting fails with BrokerUnavailable", () =>
    Effect.gen(function* () {
      const error = yield* failureOf({ brokers: ["127.0.0.1:1"], retries: 1 }, listTopics)
      assert.strictEqual(error._tag, "BrokerUnavailable")
      assert.isTrue(error.retryable)
    })
  )

  it.live("closing while a secret is being read interrupts the reading and ends at once", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      let ended = false
      const key = Deferred.succeed(started, undefined).pipe(
        Effect.andThen(Effect.never),
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            ended = true
          })
        )
      )
      const fiber = yield* Effect.forkChild(withBroker({ brokers: ["127.0.0.1:1"], ssl: { key } }, listTopics))
      yield* Deferred.await(started)
      yield* Effect.timeout(Fiber.interrupt(fiber), "3 seconds")
      assert.isTrue(ended)
    })
  )

  it.live("a host that does not exist is BrokerUnavailable", () =>
    Effect.gen(function* () {
      const error = yield* failureOf({ brokers: ["no-such-host.invalid:9092"], retries: 0 }, listTopics)
      assert.strictEqual(error._tag, "BrokerUnavailable")
    })
  )
})

KafkaSuite.own("with TLS, SASL and ACLs", { security: "sasl_ssl", acls: true }, (it) => {
  const options = Effect.map(RealKafka.RealKafka, ({ bootstrap, ca, users }) => {
    const sasl = (user: typeof users.app, mechanism: "plain" | "scram-sha-256" | "scram-sha-512" = "plain") => ({
      mechanism,
      username: user.username,
      password: Redacted.make(user.password)
    })
    return { brokers: bootstrap, ssl: { ca: ca! }, users, sasl }
  })

  it.effect("every mechanism authenticates", () =>
    Effect.gen(function* () {
      const { brokers, ssl, sasl, users } = yield* options
      for (const mechanism of ["plain", "scram-sha-256", "scram-sha-512"] as const) {
        yield* withBroker({ brokers, ssl, sasl: sasl(users.admin, mechanism) }, listTopics)
      }
    })
  )

  it.effect("SEC-01: a wrong password is AuthenticationFailed, without the password", () =>
    Effect.gen(function* () {
      const { brokers, ssl, sasl, users } = yield* options
      for (const mechanism of ["plain", "scram-sha-512"] as const) {
        const wrong = { ...users.app, password: "not-the-password" }
        const error = yield* failureOf({ brokers, ssl, sasl: sasl(wrong, mechanism) }, listTopics)
        assert.strictEqual(error._tag, "AuthenticationFailed")
        assert.notInclude(`${error.message} ${JSON.stringify(error)}`, "not-the-password")
      }
    })
  )

  it.effect("a mechanism that the listener does not offer is AuthenticationFailed", () =>
    Effect.gen(function* () {
      const { brokers, ssl } = yield* options
      const token = Effect.succeed(Redacted.make("token"))
      const error = yield* failureOf({ brokers, ssl, sasl: { mechanism: "oauthbearer", token } }, listTopics)
      assert.strictEqual(error._tag, "AuthenticationFailed")
    })
  )

  it.effect("an unknown certificate authority, and a host name that is not in the certificate, are TlsFailed", () =>
    Effect.gen(function* () {
      const { brokers, ssl, sasl, users } = yield* options
      const unknown = yield* failureOf({ brokers, ssl: true, sasl: sasl(users.admin) }, listTopics)
      assert.strictEqual(unknown._tag, "TlsFailed")
      const misnamed = { ...ssl, servername: "other.example" }
      const other = yield* failureOf({ brokers, ssl: misnamed, sasl: sasl(users.admin) }, listTopics)
      assert.strictEqual(other._tag, "TlsFailed")
    })
  )

  it.effect("an operation that ACLs deny is AuthorizationFailed and names the resource", () =>
    Effect.gen(function* () {
      const { brokers, ssl, sasl, users } = yield* options
      const topic = "secured"
      yield* withBroker({ brokers, ssl, sasl: sasl(users.admin) }, ({ admin }) =>
        Effect.flatMap(admin, (one) => one.createTopics([{ topic, partitions: 1 }]))
      )
      const app = { brokers, ssl, sasl: sasl(users.app) }
      const attempts: ReadonlyArray<readonly [string, Use<unknown>]> = [
        [topic, ({ producer }) => Effect.flatMap(producer(), ({ send }) => send({ topic, key: null, value: null }))],
        [topic, ({ admin }) => Effect.flatMap(admin, (one) => one.describeTopic(topic))],
        ["new", ({ admin }) => Effect.flatMap(admin, (one) => one.createTopics([{ topic: "new", partitions: 1 }]))],
        ["group", ({ admin }) => Effect.flatMap(admin, (one) => one.describeGroup("group"))],
        ["tx", ({ transactionalProducer }) => transactionalProducer({ transactionalId: "tx" })],
        // The topic and the group are both denied; the cluster may report either.
        [
          `${topic} or group`,
          ({ consumer }) =>
            Effect.flatMap(consumer({ groupId: "group", topics: [topic] }), ({ events }) => Queue.take(events))
        ]
      ]
      for (const [name, use] of attempts) {
        const error = yield* failureOf(app, use)
        assert.strictEqual(error._tag, "AuthorizationFailed")
        if (error._tag === "AuthorizationFailed") assert.include(name.split(" or "), error.name)
      }
    })
  )

  it.effect(
    "authorizedOperations returns granted operations, none where nothing is granted, and no entry for a topic that does not exist",
    () =>
      Effect.gen(function* () {
        const { brokers, ssl, sasl, users } = yield* options
        const topic = "acls"
        yield* withBroker({ brokers, ssl, sasl: sasl(users.admin) }, ({ admin }) =>
          Effect.flatMap(admin, (one) => one.createTopics([{ topic, partitions: 3 }]))
        )
        const allowedTo = (user: typeof users.app) =>
          withBroker({ brokers, ssl, sasl: sasl(user) }, ({ admin }) =>
            Effect.flatMap(admin, (one) => one.authorizedOperations!([topic, "acls-missing"], ["acls-group"]))
          )
        const admin = yield* allowedTo(users.admin)
        assert.deepStrictEqual([...admin.topics.keys()], [topic])
        assert.includeMembers([...(admin.topics.get(topic) ?? [])], ["Read", "Write", "Create", "Delete", "Describe"])
        assert.includeMembers([...(admin.groups.get("acls-group") ?? [])], ["Read", "Describe", "Delete"])
        assert.includeMembers([...(admin.cluster ?? [])], ["Create", "ClusterAction"])
        const app = yield* allowedTo(users.app)
        assert.deepStrictEqual(app, {
          cluster: new Set<never>(),
          topics: new Map([
            [topic, new Set<never>()],
            ["acls-missing", new Set<never>()]
          ]),
          groups: new Map([["acls-group", new Set<never>()]])
        })
        yield* grantToApp(yield* RealKafka.RealKafka, topic)
        const granted = yield* allowedTo(users.app)
        assert.deepStrictEqual([...(granted.topics.get(topic) ?? [])].sort(), ["Describe", "Read"])
      })
  )
})
