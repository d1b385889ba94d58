/** TLS: which certificates are trusted, and what is said of the others. */
import { assert, it } from "@effect/vitest"
import { ClientCertificate } from "@eventbus/kafka-runner"
import { RabbitMq } from "@eventbus/rabbitmq"
import { Effect, Redacted } from "effect"
import { onRabbitMq, reachable, testBroker } from "./rabbit.ts"
import { probing, reasonOf, sendOrder, until } from "./rig.ts"
import { tlsProxyTo } from "./tlsProxy.ts"

const [target = ""] = reachable.hosts ?? []

const refusalOf = (host: string, tls: RabbitMq.Options["tls"] & {}) =>
  Effect.map(
    Effect.flip(Effect.scoped(RabbitMq.make({ ...reachable, hosts: [host], tls, connectTimeout: 1_500 }))),
    reasonOf
  )

onRabbitMq("TLS", () => {
  it.live("SEC-01 a certificate of the given authority is trusted, for its own host name", () =>
    Effect.gen(function* () {
      const certificate = ClientCertificate.make("localhost")
      const host = yield* tlsProxyTo(target, certificate)
      const { broker } = yield* testBroker({ hosts: [host], tls: { ca: [Redacted.make(certificate.cert)] } })
      const probe = yield* probing(broker)
      yield* sendOrder(broker, 1)
      yield* until("the message arrives", () => probe.calls.length === 1)
    }).pipe(Effect.scoped)
  )

  it.live("SEC-01 another authority, another host name and a plain port are refused, and the reason says which", () =>
    Effect.gen(function* () {
      const [certificate, other] = [ClientCertificate.make("localhost"), ClientCertificate.make("localhost")]
      const elsewhere = ClientCertificate.make("rabbit.example.org")
      const host = yield* tlsProxyTo(target, certificate)
      const named = yield* tlsProxyTo(target, elsewhere)
      const refusals = [
        yield* refusalOf(host, true),
        yield* refusalOf(host, { ca: other.cert }),
        yield* refusalOf(named, { ca: elsewhere.cert }),
        yield* refusalOf(target, { ca: certificate.cert })
      ]
      const says = ["self-signed certificate", "self-signed certificate", "rabbit.example.org", "wrong version number"]
      for (const [index, [reason, text]] of refusals.entries()) {
        assert.strictEqual(reason, "TlsFailed", text)
        assert.include(text, says[index] ?? "")
        assert.notInclude(text, "\n")
      }
      // The name that the certificate must have can be given.
      yield* Effect.scoped(
        RabbitMq.make({ ...reachable, hosts: [named], tls: { ca: elsewhere.cert, servername: "rabbit.example.org" } })
      )
      yield* Effect.scoped(RabbitMq.make({ ...reachable, hosts: [named], tls: { rejectUnauthorized: false } }))
    }).pipe(Effect.scoped)
  )
})
