/** Certificates of the client and of the broker that expire while they are connected: open connections go on, new ones are refused, and a renewed certificate is taken up. */
import * as net from "node:net"
import * as tls from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { ClientCertificate } from "@eventbus/kafka-runner"
import { Effect, Redacted, type Scope } from "effect"
import { connect } from "../../packages/kafka-client/src/internal/connection/cluster.ts"
import { securedOptions } from "../../packages/kafka-client/src/internal/connection/security.ts"
import { call } from "../../packages/kafka-client/src/internal/wire/requests.ts"
import * as Bus from "../integration/bus.ts"
import { answering, makeFakeBroker } from "./fakeBroker.ts"
import { transports } from "./transports.ts"

const heartbeat = { groupId: "g", groupGenerationId: 1, memberId: "m", groupInstanceId: null }

/** Certificates that all ends trust. */
const [ofClient, ofBroker] = [ClientCertificate.make("app"), ClientCertificate.make("localhost")]

interface Listener {
  readonly port: number
  /** Connections so far. */
  readonly opened: () => number
  readonly renew: (certificate: ClientCertificate.ClientCertificate) => void
  readonly cut: () => void
}

/** TLS before the broker at `port`, with this certificate. It demands one of the clients' certificates. */
const listen = (
  port: number,
  certificate: ClientCertificate.ClientCertificate,
  clients: ReadonlyArray<string>
): Effect.Effect<Listener, never, Scope.Scope> => {
  const open = new Set<net.Socket>()
  let opened = 0
  const server = tls.createServer({ ...certificate, ca: [...clients], requestCert: true, rejectUnauthorized: true })
  server.on("tlsClientError", () => {})
  server.on("secureConnection", (client) => {
    opened++
    const broker = net.connect(port, "127.0.0.1")
    for (const end of [client, broker]) {
      open.add(end)
      end.on("error", () => {}).on("close", () => [client, broker].map((each) => each.destroy()))
    }
    client.pipe(broker).pipe(client)
  })
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  return Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => [server.close(), cut()])
  ).pipe(
    Effect.map(() => ({
      port: (server.address() as net.AddressInfo).port,
      opened: () => opened,
      renew: ({ cert, key }) => server.setSecureContext({ cert, key, ca: [...clients] }),
      cut
    }))
  )
}

const lifeMillis = 2_500

describe.concurrent.each(transports)("a certificate that expires while connected ($name)", ({ open }) => {
  it.live.each(["client", "broker"] as const)(
    "CLN-06 SEC-01 the %s's: the connection goes on, the next one is refused, and a renewed certificate is taken up",
    (whose) =>
      Effect.gen(function* () {
        const ends = performance.now() + lifeMillis
        const expiring = ClientCertificate.make(whose === "client" ? "app" : "localhost", lifeMillis)
        const broker = yield* makeFakeBroker(answering)
        const [client, server] = whose === "client" ? [expiring, ofBroker] : [ofClient, expiring]
        const listener = yield* listen(broker.port, server, [client.cert, ofClient.cert])
        // Its metadata names the address before which TLS stands.
        broker.nodes = new Map([[1, { ...broker, port: listener.port }]])
        let current = client
        const options = securedOptions(
          {
            brokers: [`127.0.0.1:${listener.port}`],
            ssl: {
              ca: [server.cert, ofBroker.cert],
              servername: "localhost",
              cert: Effect.sync(() => Redacted.make(current.cert)),
              key: Effect.sync(() => Redacted.make(current.key))
            }
          },
          open
        )
        const cluster = yield* connect(options)
        const beat = Effect.flatMap(cluster.node(1), (node) => call(node, "Heartbeat", heartbeat))
        yield* beat
        const opened = listener.opened()
        yield* Bus.until("the certificate has expired", () => performance.now() > ends)
        yield* beat
        assert.strictEqual(listener.opened(), opened)

        listener.cut()
        yield* Bus.until("the connections have ended", () => broker.connections() === 0)
        yield* Effect.sleep("20 millis")
        const refused = yield* Effect.flip(beat)
        // The refusal of a client may be seen as a closed socket only.
        assert.oneOf(refused.type, whose === "broker" ? ["TLS"] : ["TLS", "CONNECTION"], refused.detail)
        if (whose === "broker") assert.match(refused.detail, /certificate/)

        current = ofClient
        listener.renew(ofBroker)
        yield* beat
      })
  )
})
