/** A proxy before a real broker that cuts connections at random bytes, delays and drips: records are written and read all the same, and nothing stays open. */
import * as net from "node:net"
import { assert } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { KafkaClient, type Transport } from "@eventbus/kafka-client"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, type Scope } from "effect"
import { observer } from "../../packages/kafkajs/test/bareClient.ts"
import * as Bus from "../integration/bus.ts"
import * as SteadyTraffic from "../integration/steadyTraffic.ts"
import { transports } from "./transports.ts"

interface Proxy {
  readonly port: number
  /** Connections so far, and connections that the proxy has cut. */
  readonly counts: { opened: number; cut: number }
  /** From now on connections pass as they are. */
  calm: boolean
}

const upTo = (limit: number): number => Math.floor(Math.random() * limit)

/** Passes bytes on in pieces, late; after `budget` bytes it ends both sides. */
const pass = (from: net.Socket, to: net.Socket, proxy: Proxy, cut: () => void): void => {
  let budget = 200 + upTo(20_000)
  let chain = Promise.resolve()
  const pieceOf = 1 + upTo(400)
  const delayMillis = upTo(4)
  const passOn = async (bytes: Buffer): Promise<void> => {
    for (let at = 0; at < bytes.length && !to.destroyed; ) {
      const size = proxy.calm ? bytes.length : Math.min(pieceOf, budget)
      to.write(bytes.subarray(at, at + size))
      at += size
      if (proxy.calm) continue
      budget -= size
      if (budget <= 0) return cut()
      if (upTo(4) === 0) await new Promise((resolve) => setTimeout(resolve, delayMillis))
    }
  }
  from.on("data", (bytes: Buffer) => {
    chain = chain.then(() => passOn(bytes))
  })
}

const makeProxy = (brokerPort: number): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ proxy: Proxy; close: () => void }>((resume) => {
        const open = new Set<net.Socket>()
        const counts = { opened: 0, cut: 0 }
        const server = net.createServer((client) => {
          const broker = net.connect(brokerPort, "127.0.0.1")
          counts.opened++
          const ends = [client, broker]
          for (const end of ends) {
            open.add(end)
            end.setNoDelay(true)
            end
              .on("error", () => {})
              .on("close", () => {
                open.delete(end)
                for (const each of ends) each.destroy()
              })
          }
          const cut = (): void => {
            counts.cut++
            if (upTo(2) === 0) client.resetAndDestroy()
            else client.destroy()
          }
          pass(client, broker, proxy, cut)
          pass(broker, client, proxy, cut)
        })
        let proxy: Proxy
        server.listen(0, "127.0.0.1", () => {
          const at = server.address()
          proxy = { port: typeof at === "object" && at !== null ? at.port : 0, counts, calm: true }
          const close = () => {
            server.close()
            for (const socket of open) socket.destroy()
          }
          resume(Effect.succeed({ proxy, close }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ proxy }) => proxy
  )

/** The transport with every node behind the proxy. */
const through =
  (proxy: Proxy, open: Transport.Open): Transport.Open =>
  (settings) =>
    Effect.map(open(settings), (transport) => ({
      ...transport,
      open: async (address) => {
        const { connect, isConnected, isBusy, versionsOf, features, send, disconnect, closeAtOnce } =
          await transport.open({
            host: "127.0.0.1",
            port: proxy.port
          })
        return { ...address, connect, isConnected, isBusy, versionsOf, features, send, disconnect, closeAtOnce }
      }
    }))

const openSockets = (): number => process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP")).length

KafkaSuite.shared("connections that are cut", (bootstrap) => {
  for (const { name, open } of transports) {
    Bus.story(bootstrap, `CLN-06 C52 ${name}: nothing is lost while connections are cut, delayed and dripped`, () =>
      Effect.gen(function* () {
        const socketsBefore = openSockets()
        yield* Effect.scoped(
          Effect.gen(function* () {
            const proxy = yield* makeProxy(Number(bootstrap[0]!.split(":")[1]))
            const broker = KafkaClient.make(
              { name, transport: name.toLowerCase(), open: through(proxy, open) },
              { brokers: bootstrap, requestTimeout: "5 seconds" }
            )
            const traffic = yield* Effect.provideService(SteadyTraffic.start("cut"), Broker.Broker, broker)
            proxy.calm = false
            yield* Effect.sleep("6 seconds")
            proxy.calm = true
            yield* traffic.endsWell
            assert.isAtLeast(proxy.counts.cut, 5)
            const topic = (yield* traffic.app.connector.listBindings)[0]!.topic
            const seen = yield* observer(bootstrap, `${topic}-observer`, [topic])
            const values = () => new Set(seen.map(({ value }) => value)).size
            yield* Bus.until("another client reads every record", () => values() === traffic.written(), {
              otherwise: values
            })
          })
        )
        yield* Bus.until("no socket is left", () => openSockets() <= socketsBefore, { otherwise: openSockets })
      })
    )
  }
})
