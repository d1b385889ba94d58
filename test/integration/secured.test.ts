/**
 * SASL on a real broker that ends sessions after 3 seconds (KIP-368): every mechanism, credentials that are wrong, repaired, rotated or expired while records
 * flow, and secrets in nothing that comes out.
 */
import { inspect } from "node:util"
import { assert } from "@effect/vitest"
import { Binding, Broker, type BrokerError, EventBusConnector, RetryPolicy, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import type { KafkaJs } from "@eventbus/kafkajs"
import { Context, Data, Effect, Layer, Logger, Metric, Redacted, References, Schedule } from "effect"
import * as Bus from "./bus.ts"
import * as DoorBus from "./doorBus.ts"
import * as SteadyTraffic from "./steadyTraffic.ts"

/** They wait more than they work, and each has topics, groups and, where it is changed, a user of its own. */
const waiting = { timeout: 90_000, concurrent: true } as const

const sessionMillis = 3_000

class ServerAway extends Data.TaggedError("ServerAway") {}

const byPassword = (mechanism: KafkaJs.SaslPassword["mechanism"], username: string, password: string) => ({
  mechanism,
  username,
  password: Redacted.make(password)
})

const listTopics = Effect.scoped(
  Effect.flatMap(Broker.Broker, ({ admin }) => Effect.flatMap(admin, (one) => one.listTopics))
)

KafkaSuite.own(
  "a cluster with SASL",
  { security: "sasl", oauth: true, config: { "connections.max.reauth.ms": String(sessionMillis) } },
  (it) => {
    const as = <A, E, R>(sasl: KafkaJs.Sasl, effect: Effect.Effect<A, E, R>) =>
      Effect.flatMap(RealKafka.RealKafka, ({ bootstrap }) => Bus.on({ brokers: bootstrap, sasl }, effect))

    const asAdmin = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.flatMap(RealKafka.RealKafka, ({ users }) =>
        as(byPassword("plain", users.admin.username, users.admin.password), effect)
      )

    const refusal = (sasl: KafkaJs.Sasl) => Effect.flip(as(sasl, listTopics))

    it.effect("every mechanism authenticates", () =>
      Effect.gen(function* () {
        const { users } = yield* RealKafka.RealKafka
        for (const mechanism of ["plain", "scram-sha-256", "scram-sha-512"] as const) {
          yield* as(byPassword(mechanism, users.app.username, users.app.password), listTopics)
        }
        const token = Effect.sync(() => Redacted.make(RealKafka.token("app", 60_000)))
        yield* as({ mechanism: "oauthbearer", token }, listTopics)
      })
    )

    it.effect(
      "RCH-06 a bus of promises authenticates by functions of password and token, and a refusal is the error of publish",
      () =>
        Effect.gen(function* () {
          const { bootstrap: brokers, users } = yield* RealKafka.RealKafka
          const topic = Bus.fresh("door")
          yield* asAdmin(Bus.createTopic(topic, 1))
          const { username, password } = users.app
          yield* DoorBus.passesOn(topic, {
            brokers,
            sasl: { mechanism: "scram-sha-512", username: () => username, password: async () => password }
          })
          const token = async () => ({ value: RealKafka.token("app", 60_000), expiresAt: Date.now() + 60_000 })
          yield* DoorBus.passesOn(topic, { brokers, sasl: { mechanism: "oauthbearer", token } })
          const expired = async () => RealKafka.token("app", -1_000)
          const refused = yield* Effect.flip(
            DoorBus.passesOn(topic, { brokers, sasl: { mechanism: "oauthbearer", token: expired } })
          )
          assert.strictEqual(refused._tag, "AuthenticationFailed")
        })
    )

    it.effect("refused and unavailable credentials have different error types", () =>
      Effect.gen(function* () {
        for (const mechanism of ["plain", "scram-sha-256", "scram-sha-512"] as const) {
          assert.strictEqual((yield* refusal(byPassword(mechanism, "app", "wrong")))._tag, "AuthenticationFailed")
          assert.strictEqual((yield* refusal(byPassword(mechanism, "nobody", "x")))._tag, "AuthenticationFailed")
        }
        const expired = Effect.sync(() => Redacted.make(RealKafka.token("app", -1_000)))
        for (const token of [expired, Effect.succeed(Redacted.make("no token"))]) {
          const refused = yield* refusal({ mechanism: "oauthbearer", token })
          assert.strictEqual(refused._tag, "AuthenticationFailed", refused.message)
        }
        const away = yield* refusal({ mechanism: "oauthbearer", token: Effect.fail(new ServerAway()) })
        assert.strictEqual(away._tag, "CredentialsUnavailable")
        const silent = yield* Effect.flatMap(RealKafka.RealKafka, ({ bootstrap }) =>
          Effect.flip(Bus.on({ brokers: bootstrap }, listTopics))
        )
        assert.include(silent.message, "does the listener speak plain text and want no `sasl`")
        const tls = yield* Effect.flatMap(RealKafka.RealKafka, ({ bootstrap }) =>
          Effect.flip(Bus.on({ brokers: bootstrap, ssl: true }, listTopics))
        )
        assert.include(tls.message, "does the listener speak TLS")
      })
    )

    it.effect(
      "busy and idle connections renew sessions that the broker limits, without a loss or a new connection",
      () =>
        Effect.gen(function* () {
          const { users } = yield* RealKafka.RealKafka
          const sasl = byPassword("scram-sha-256", users.app.username, users.app.password)
          yield* as(
            sasl,
            Effect.gen(function* () {
              const idle = Bus.fresh("idle")
              yield* Bus.createTopic(idle, 1)
              const { send } = yield* (yield* Broker.Broker).producer()
              yield* send({ topic: idle, key: null, value: null })
              const traffic = yield* SteadyTraffic.start("renewed")
              yield* Effect.sleep(2.5 * sessionMillis)
              // Its session is over: it is renewed before the record is sent.
              yield* send({ topic: idle, key: null, value: null })
              yield* traffic.endsWell
              assert.deepStrictEqual(traffic.app.of("SessionCrashed"), [])
            })
          )
        }),
      waiting
    )

    it.effect(
      "a wrong password is logged once, and heals when the secret is repaired",
      () =>
        Effect.gen(function* () {
          const { users } = yield* RealKafka.RealKafka
          let password = "not-the-password"
          const name = Bus.fresh("repaired")
          const handled: Array<string> = []
          const binding = Binding.make(name, {
            topic: name,
            groupId: name,
            value: Serde.string,
            retry: RetryPolicy.blocking(),
            handler: ({ value }) => Effect.sync(() => void handled.push(value))
          })
          yield* asAdmin(Bus.createTopic(name, 1))
          yield* asAdmin(Bus.publish([{ topic: name, key: null, value: Bus.bytes("kept") }]))
          const sasl: KafkaJs.Sasl = {
            ...byPassword("scram-sha-512", users.app.username, ""),
            password: Effect.sync(() => Redacted.make(password))
          }
          const app = yield* as(sasl, Bus.start(binding))
          yield* Bus.until("it was tried three times", () => app.of("SessionCrashed").length >= 3)
          for (const { error } of app.of("SessionCrashed")) assert.strictEqual(error._tag, "AuthenticationFailed")
          const said = app.log.filter(({ message }) => message.includes("Authentication by SCRAM-SHA-512 was refused"))
          assert.strictEqual(said.length, 1)
          password = users.app.password
          yield* Bus.until("the record is handled", () => handled.length === 1)
          assert.deepStrictEqual(handled, ["kept"])
        }),
      waiting
    )

    it.effect(
      "a password is rotated while records flow: the old one ends, connections are cut, no record is lost",
      () =>
        Effect.gen(function* () {
          const cluster = yield* RealKafka.RealKafka
          const username = "rotating"
          let password = "the-first-one"
          yield* cluster.setPassword(username, password)
          const sasl: KafkaJs.Sasl = {
            ...byPassword("scram-sha-512", username, ""),
            password: Effect.sync(() => Redacted.make(password))
          }
          yield* as(
            sasl,
            Effect.gen(function* () {
              yield* Effect.retry(listTopics, Schedule.spaced("200 millis"))
              const traffic = yield* SteadyTraffic.start("rotated")
              // The other way round than it should be: the old one ends first, and for a whole session nobody knows the new one.
              yield* cluster.setPassword(username, "the-next-one")
              yield* Bus.until("the old one is refused", () => traffic.app.of("SessionCrashed").length > 0)
              password = "the-next-one"
              yield* traffic.goesOn()
              assert.strictEqual(
                (yield* refusal(byPassword("scram-sha-512", username, "the-first-one")))._tag,
                "AuthenticationFailed"
              )
              yield* traffic.endsWell
            })
          )
        }),
      waiting
    )

    it.effect(
      "tokens that expire while records flow are replaced in time: no session ends, and all connections share them",
      () =>
        Effect.gen(function* () {
          let asked = 0
          const token = Effect.sync(() => {
            asked++
            return { value: Redacted.make(RealKafka.token("app", 2_500)), expiresAt: Date.now() + 2_500 }
          })
          yield* as(
            { mechanism: "oauthbearer", token },
            Effect.gen(function* () {
              const traffic = yield* SteadyTraffic.start("tokens")
              yield* Effect.sleep("7 seconds")
              yield* traffic.endsWell
              assert.deepStrictEqual(traffic.app.of("SessionCrashed"), [])
            })
          )
          assert.isAtLeast(asked, 3)
          assert.isAtMost(asked, 8)
        }),
      waiting
    )

    it.effect(
      "tokens expire while their server is unreachable: consuming fails with a typed error, and goes on when the server is back",
      () =>
        Effect.gen(function* () {
          let away = false
          const token = Effect.suspend(() =>
            away
              ? Effect.fail(new ServerAway())
              : Effect.succeed({ value: Redacted.make(RealKafka.token("app", 3_000)), expiresAt: Date.now() + 3_000 })
          )
          yield* as(
            { mechanism: "oauthbearer", token },
            Effect.gen(function* () {
              const traffic = yield* SteadyTraffic.start("expired")
              away = true
              yield* Bus.until("the session ends", () => traffic.app.of("SessionCrashed").length > 0)
              const tags = traffic.app.of("SessionCrashed").map(({ error }) => error._tag)
              assert.deepStrictEqual([...new Set<BrokerError.BrokerError["_tag"]>(tags)], ["CredentialsUnavailable"])
              away = false
              yield* traffic.goesOn()
              yield* traffic.endsWell
            })
          )
        }),
      waiting
    )

    it.effect(
      "SEC-01 a failing login shows its secret in no log down to trace, event, error, snapshot or metric",
      () =>
        Effect.gen(function* () {
          const output: Array<unknown> = []
          const secrets = ["pass-w0rd-1", "pass-w0rd-2", RealKafka.token("app", -60_000), "s3cret-client"]
          const logins: ReadonlyArray<KafkaJs.Sasl> = [
            byPassword("plain", "app", secrets[0]!),
            byPassword("scram-sha-512", "app", secrets[1]!),
            { mechanism: "oauthbearer", token: Effect.succeed(Redacted.make(secrets[2]!)) },
            {
              mechanism: "oauthbearer",
              tokenEndpoint: "http://127.0.0.1:1/token",
              clientId: "app",
              clientSecret: Redacted.make(secrets[3]!)
            }
          ]
          for (const sasl of logins) {
            const name = Bus.fresh("secret")
            const binding = Binding.make(name, {
              topic: name,
              groupId: name,
              value: Serde.string,
              retry: RetryPolicy.blocking(),
              handler: () => Effect.void
            })
            const lines: Array<string> = []
            const capture = Logger.layer([Logger.make((entry) => void lines.push(Logger.formatJson.log(entry)))])
            yield* Effect.gen(function* () {
              const connector = Context.get(
                yield* Layer.build(EventBusConnector.layer),
                EventBusConnector.EventBusConnector
              )
              let crashes = 0
              yield* connector.subscribe((event) => {
                output.push(event)
                if (event._tag === "SessionCrashed") crashes++
              })
              yield* connector.register(binding)
              yield* Bus.until("it was refused twice", () => crashes >= 2)
              output.push(yield* connector.listBindings)
            }).pipe((story) => as(sasl, story), Effect.scoped, Effect.provide(capture))
            assert.isTrue(
              lines.some((line) => line.includes('"DEBUG"')),
              `client's log: ${lines.join("\n")}`
            )
            output.push(lines, yield* Effect.provide(refusal(sasl), capture), sasl)
          }
          output.push(yield* Metric.snapshot)
          const text = inspect(output, { depth: 20, maxArrayLength: null, maxStringLength: null, showHidden: true })
          for (const secret of secrets) assert.notInclude(text, secret)
        }).pipe(Effect.provideService(References.MinimumLogLevel, "Trace")),
      waiting
    )
  }
)
