/** TLS on a real broker that demands client certificates: what is accepted, what is refused, host names, and a certificate that is rotated while records flow. */
import * as net from "node:net"
import { assert } from "@effect/vitest"
import { Broker, type BrokerError } from "@eventbus/core"
import { ClientCertificate, RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import type { KafkaJs } from "@eventbus/kafkajs"
import { Effect, Redacted } from "effect"
import * as Bus from "./bus.ts"
import * as DoorBus from "./doorBus.ts"
import * as SteadyTraffic from "./steadyTraffic.ts"

const listTopics = Effect.scoped(
  Effect.flatMap(Broker.Broker, ({ admin }) => Effect.flatMap(admin, (one) => one.listTopics))
)

/** The broker under another address of this machine. */
const elsewhere = (address: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const port = Number(address.split(":")[1])
      const server = net.createServer((socket) => {
        const broker = net.connect(port, "127.0.0.1")
        for (const end of [socket, broker]) end.on("error", () => [socket, broker].map((each) => each.destroy()))
        socket.pipe(broker).pipe(socket)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.2", resolve))
      return server
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => `127.0.0.2:${(server.address() as net.AddressInfo).port}`))

KafkaSuite.own("a cluster with mutual TLS", { security: "ssl", clientCertificates: true }, (it) => {
  /** The part of the cluster's data that a client may know. */
  const given = Effect.map(RealKafka.RealKafka, (cluster) => {
    const { bootstrap, ca = "", client = ClientCertificate.make("none") } = cluster
    const identity = { cert: client.cert, key: Redacted.make(client.key) }
    const refusal = (options: Omit<KafkaJs.Options, "brokers">, brokers = bootstrap) =>
      Effect.flip(Bus.on({ brokers, ...options }, listTopics))
    return { cluster, bootstrap, ca, client, identity, refusal }
  })

  const isTlsFailed = (error: BrokerError.BrokerError, says: RegExp) => {
    assert.strictEqual(error._tag, "TlsFailed", error.message)
    assert.match(error.message, says)
  }

  it.effect("a certificate that the broker trusts is accepted, also with an encrypted key", () =>
    Effect.gen(function* () {
      const { bootstrap, ca, client, identity } = yield* given
      yield* Bus.on({ brokers: bootstrap, ssl: { ca: [ca], ...identity } }, listTopics)
      const encrypted = {
        cert: Effect.succeed(Redacted.make(client.cert)),
        key: Effect.succeed(Redacted.make(client.encryptedKey)),
        passphrase: Redacted.make(client.passphrase)
      }
      yield* Bus.on({ brokers: bootstrap, ssl: { ca, ...encrypted } }, listTopics)
    })
  )

  it.effect(
    "RCH-06 a bus of promises has the same TLS options as texts and functions, and a refusal is the error of publish",
    () =>
      Effect.gen(function* () {
        const { bootstrap: brokers, ca, client, identity } = yield* given
        const topic = Bus.fresh("door")
        yield* Bus.on({ brokers, ssl: { ca, ...identity } }, Bus.createTopic(topic, 1))
        const encrypted = {
          cert: () => client.cert,
          key: async () => client.encryptedKey,
          passphrase: client.passphrase
        }
        yield* DoorBus.passesOn(topic, { brokers, ssl: { ca: [ca], ...encrypted } })
        const refused = yield* Effect.flip(DoorBus.passesOn(topic, { brokers, ssl: { ca: async () => ca } }))
        assert.strictEqual(refused._tag, "TlsFailed")
      })
  )

  it.effect("no certificate, and one that the broker does not know, are TlsFailed", () =>
    Effect.gen(function* () {
      const { ca, refusal } = yield* given
      isTlsFailed(yield* refusal({ ssl: { ca } }), /client certificate/)
      const stranger = ClientCertificate.make("app")
      isTlsFailed(yield* refusal({ ssl: { ca, cert: stranger.cert, key: Redacted.make(stranger.key) } }), /certificate/)
    })
  )

  it.effect("SEC-01 a key that does not fit or cannot be decrypted is TlsFailed, and is not shown", () =>
    Effect.gen(function* () {
      const { ca, client, refusal } = yield* given
      const other = ClientCertificate.make("other")
      const misfits = [
        { cert: client.cert, key: Redacted.make(other.key) },
        { cert: client.cert, key: Redacted.make("not a key") },
        { cert: client.cert, key: Redacted.make(client.encryptedKey), passphrase: Redacted.make("wrong-passphrase") }
      ]
      for (const misfit of misfits) {
        const error = yield* refusal({ ssl: { ca, ...misfit } })
        isTlsFailed(error, /cannot be used/)
        for (const secret of [other.key, "not a key", "wrong-passphrase"]) assert.notInclude(error.message, secret)
      }
    })
  )

  it.effect("the broker's certificate must come from a known authority and name the host", () =>
    Effect.gen(function* () {
      const { ca, bootstrap, identity, refusal } = yield* given
      isTlsFailed(yield* refusal({ ssl: { ...identity } }), /self-signed/)
      isTlsFailed(yield* refusal({ ssl: { ca: ClientCertificate.make("x").cert, ...identity } }), /self-signed|unable/)
      isTlsFailed(yield* refusal({ ssl: { ca, ...identity, servername: "other.example" } }), /altnames/)
      // It names localhost and 127.0.0.1, and no other address of this machine.
      const localhost = bootstrap.map((address) => address.replace("127.0.0.1", "localhost"))
      yield* Bus.on({ brokers: localhost, ssl: { ca, ...identity } }, listTopics)
      isTlsFailed(yield* refusal({ ssl: { ca, ...identity } }, [yield* elsewhere(bootstrap[0]!)]), /altnames/)
      yield* Bus.on({ brokers: bootstrap, ssl: { ...identity, rejectUnauthorized: false } }, listTopics)
    })
  )

  it.effect("plain text to the TLS listener, and a password where none is expected, have clear errors", () =>
    Effect.gen(function* () {
      const { ca, identity, refusal } = yield* given
      const plain = yield* refusal({})
      assert.match(plain.message, /speaks TLS: set `ssl`/)
      const sasl = { mechanism: "plain", username: "app", password: Redacted.make("unwanted") } as const
      const unwanted = yield* refusal({ ssl: { ca, ...identity }, sasl })
      assert.strictEqual(unwanted._tag, "AuthenticationFailed")
      assert.match(unwanted.message, /wants no authentication/)
    })
  )

  it.effect(
    "new connections use a client certificate that is rotated while records flow, and no record is lost",
    () =>
      Effect.gen(function* () {
        const { cluster, bootstrap, ca, client, refusal } = yield* given
        const next = ClientCertificate.make("app")
        let current = client
        const ssl: KafkaJs.Ssl = {
          ca,
          cert: Effect.sync(() => Redacted.make(current.cert)),
          key: Effect.sync(() => Redacted.make(current.key))
        }
        const story = Effect.gen(function* () {
          const traffic = yield* SteadyTraffic.start("certificates")
          yield* cluster.trustClients(next.cert)
          yield* cluster.stop(1)
          yield* cluster.restart(1)
          current = next
          yield* traffic.goesOn()
          isTlsFailed(yield* refusal({ ssl: { ca, cert: client.cert, key: Redacted.make(client.key) } }), /certificate/)
          yield* traffic.endsWell
        })
        yield* Bus.on({ brokers: bootstrap, ssl }, story)
      }),
    90_000
  )
})
