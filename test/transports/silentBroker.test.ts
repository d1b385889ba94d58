/** Addresses that accept connections and do not answer: they delay a look-up by seconds, and the log says so. */
import { spawn } from "node:child_process"
import dns from "node:dns"
import { connect as connectTcp, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, type BrokerError, EventBusConnector, Health, RetryPolicy, Serde } from "@eventbus/core"
import { Effect, Fiber, Layer, Logger, Redacted, Schedule } from "effect"
import { vi } from "vitest"
import { connect } from "../../packages/kafka-client/src/internal/connection/cluster.ts"
import type { Options } from "../../packages/kafka-client/src/internal/connection/options.ts"
import { securedOptions } from "../../packages/kafka-client/src/internal/connection/security.ts"
import { call } from "../../packages/kafka-client/src/internal/wire/requests.ts"
import {
  after,
  answering,
  apiKey,
  type FakeBroker,
  frozen,
  makeFakeBroker,
  type Request,
  silent
} from "./fakeBroker.ts"
import { type Tested, transports } from "./transports.ts"

/** How long an effect takes, in milliseconds, and its value. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    return Effect.map(effect, (value) => ({ value, millis: performance.now() - startedAt }))
  })

/** Log lines of an effect, of level warning and info. */
const makeLog = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn" || logLevel === "Info") lines.push(String(message))
  })
  return { lines, layer: Logger.layer([logger]) }
}

const brokersOf = (...brokers: ReadonlyArray<FakeBroker>) => brokers.map(({ address }) => address)

const open = (on: Tested, options: Options, clientId?: string) => connect(securedOptions(options, on.open), clientId)

/** A cluster of nodes 1, 2, ... */
const clusterOf = (...behaviours: ReadonlyArray<FakeBroker["behave"]>) =>
  Effect.gen(function* () {
    const brokers = yield* Effect.forEach(behaviours, (behave) => makeFakeBroker(behave))
    const nodes = new Map(brokers.map((broker, index) => [index + 1, broker]))
    for (const broker of brokers) broker.nodes = nodes
    return brokers
  })

const heartbeat = { groupId: "g", groupGenerationId: 1, memberId: "m", groupInstanceId: null }

const failureOf = (on: Tested, options: Options) =>
  timed(
    Effect.flip(Effect.scoped(Effect.flatMap(Broker.Broker, ({ admin }) => admin))).pipe(
      Effect.provide(on.layer(options))
    )
  )

const unavailable = (error: BrokerError.BrokerError): string => {
  assert.strictEqual(error._tag, "BrokerUnavailable")
  return error.message
}

describe.concurrent.each(transports)("bootstrap ($name)", (on) => {
  it.live("CLN-06 C52 ruling 82 a silent first address delays by a second, is logged, and leaves no socket", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const [mute, good] = [yield* makeFakeBroker(silent), yield* makeFakeBroker(answering)]
      const { value, millis } = yield* Effect.provide(timed(open(on, { brokers: brokersOf(mute, good) })), log.layer)
      assert.strictEqual(value.id, "fake")
      assert.isBelow(millis, 2_500)
      assert.match(log.lines.join("\n"), new RegExp(`Broker ${mute.address} has not answered for 1\\.\\d s`))
      yield* Effect.sleep(100)
      assert.strictEqual(mute.connections(), 0)
    })
  )

  it.live("CLN-06 ruling 82 one silence delays one connection of a client; the others ask that address last", () =>
    Effect.gen(function* () {
      const [mute, good] = [yield* makeFakeBroker(silent), yield* makeFakeBroker(answering)]
      const options = securedOptions({ brokers: brokersOf(mute, good) }, on.open)
      yield* connect(options)
      const { millis } = yield* timed(connect(options))
      assert.isBelow(millis, 900)
    })
  )

  it.live("CLN-06 ruling 82 three silent addresses of nine, the first three, delay by three seconds", () =>
    Effect.gen(function* () {
      const mute = yield* Effect.replicateEffect(makeFakeBroker(silent), 3)
      const good = yield* Effect.replicateEffect(makeFakeBroker(answering), 6)
      const { millis } = yield* timed(open(on, { brokers: brokersOf(...mute, ...good) }))
      assert.isBelow(millis, 4_500)
    })
  )

  it.live("CLN-06 ruling 82 a binding whose addresses are all silent shows it in health within seconds", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const mute = yield* makeFakeBroker(silent)
      const binding = Binding.make("orders", {
        ...{ topic: "orders", groupId: "billing", value: Serde.string, retry: RetryPolicy.blocking() },
        handler: () => Effect.void
      })
      const shown = Effect.gen(function* () {
        const connector = yield* EventBusConnector.EventBusConnector
        yield* Effect.forkChild(connector.register(binding))
        return yield* connector.health.pipe(
          Effect.repeat({
            schedule: Schedule.spaced("50 millis"),
            until: ({ reasons }) => reasons.some(({ _tag }) => _tag === "ClusterUnreachable")
          })
        )
      })
      const layer = Layer.provideMerge(EventBusConnector.layer, on.layer({ brokers: [mute.address] }))
      const { millis, value } = yield* timed(shown).pipe(
        Effect.provide(Layer.provideMerge(layer, log.layer)),
        Effect.timeout("20 seconds")
      )
      const text = value.reasons.map(Health.describe).join("\n")
      assert.include(text, `${mute.address} accepted the connection and did not answer for 3.`)
      assert.isBelow(millis, 5_000)
      assert.match(log.lines.join("\n"), new RegExp(`Broker ${mute.address} has not answered for 1\\.\\d s`))
    })
  )

  it.live("ruling 82 an address that answers late is not given up: alone, or before one that never does", () =>
    Effect.gen(function* () {
      const atFirst = (request: Request) =>
        request.apiKey === apiKey.apiVersions ? after(1_300)(request) : request.answer()
      const [late, mute] = [yield* makeFakeBroker(atFirst), yield* makeFakeBroker(silent)]
      yield* open(on, { brokers: brokersOf(late), retries: 0 })
      yield* open(on, { brokers: brokersOf(late, mute), retries: 0 })
    })
  )

  it.live("CLN-06 when no address answers, the error names each, and the time that was really waited", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* makeFakeBroker(silent), yield* makeFakeBroker(silent)]
      const { value, millis } = yield* failureOf(on, {
        brokers: brokersOf(one, two),
        retries: 0,
        connectionTimeout: 1_500,
        requestTimeout: 20_000
      })
      const text = unavailable(value)
      assert.match(text, new RegExp(`${one.address} accepted the connection and did not answer for 1\\.\\d s`))
      assert.match(text, new RegExp(`${two.address} accepted the connection and did not answer for 1\\.\\d s`))
      assert.isBelow(millis, 3_500)
    })
  )

  it.live(
    "ruling 82 a supervised connection does not ask silent addresses again, and asks refused ones as often as before",
    () =>
      Effect.gen(function* () {
        const mute = yield* makeFakeBroker(silent)
        const supervised = (address: string) =>
          timed(
            Effect.flip(
              connect(securedOptions({ brokers: [address], connectionTimeout: 400, retries: 3 }, on.open), undefined, {
                isSupervised: true
              })
            )
          )
        const silence = yield* supervised(mute.address)
        assert.isBelow(silence.millis, 1_500)
        const refused = yield* supervised("127.0.0.1:1")
        // Pauses of 100, 200 and 400 ms; none begins after the connection timeout.
        assert.isAtLeast(refused.millis, 300)
      })
  )

  it.live("ruling 82 silence in the SASL exchange, and in the TLS handshake, is silence", () =>
    Effect.gen(function* () {
      const inSasl = ({ apiKey: key, answer }: Request) => (key === apiKey.apiVersions ? answer() : undefined)
      const mute = yield* makeFakeBroker(inSasl)
      const sasl = { mechanism: "plain", username: "u", password: Redacted.make("p") } as const
      const options = { brokers: [mute.address], retries: 0, connectionTimeout: 500, requestTimeout: 20_000 }
      for (const security of [{ sasl }, { ssl: true }]) {
        const { value, millis } = yield* failureOf(on, { ...options, ...security })
        assert.include(unavailable(value), mute.address)
        assert.isBelow(millis, 2_500)
      }
    })
  )

  it.live("ruling 82 an address that does not even accept the connection is passed over", () =>
    Effect.gen(function* () {
      const full = yield* fullBacklog
      const good = yield* makeFakeBroker(answering)
      const { millis } = yield* timed(open(on, { brokers: [full, good.address] }))
      assert.isBelow(millis, 2_500)
      const failed = yield* failureOf(on, { brokers: [full], retries: 0, connectionTimeout: 1_200 })
      assert.match(unavailable(failed.value), new RegExp(`${full} did not accept the connection for 1\\.\\d s`))
    })
  )

  it.live("ruling 82 of a name with two addresses the second is used when the first is silent", () =>
    Effect.gen(function* () {
      const mute = yield* makeFakeBroker(silent)
      const good = yield* makeFakeBroker(answering, { host: "127.0.0.2", port: mute.port })
      good.nodes = new Map([[1, { ...good, port: good.port }]])
      const lookup = vi.spyOn(dns, "lookup")
      lookup.mockImplementation(((_: string, __: unknown, callback: (...found: ReadonlyArray<unknown>) => void) =>
        callback(null, [
          { address: "127.0.0.1", family: 4 },
          { address: "127.0.0.2", family: 4 }
        ])) as never)
      yield* Effect.addFinalizer(() => Effect.sync(() => lookup.mockRestore()))
      const { millis } = yield* timed(open(on, { brokers: [`kafka.test:${mute.port}`], retries: 0 }))
      assert.isBelow(millis, 2_500)
    })
  )
})

/** The address of a stopped process whose queue of connections is full: it answers not even the first packet. */
const fullBacklog = Effect.gen(function* () {
  const script =
    'const s = require("net").createServer().listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => console.log(s.address().port))'
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] })),
    (one) => Effect.sync(() => one.kill("SIGKILL"))
  )
  const port = yield* Effect.promise(
    () => new Promise<number>((resolve) => child.stdout.once("data", (bytes) => resolve(Number(bytes))))
  )
  child.kill("SIGSTOP")
  const waiting: Array<Socket> = []
  yield* Effect.addFinalizer(() => Effect.sync(() => waiting.forEach((socket) => void socket.destroy())))
  for (let index = 0; index < 8; index++) {
    waiting.push(connectTcp({ host: "127.0.0.1", port }).on("error", () => {}))
  }
  yield* Effect.sleep(200)
  return `127.0.0.1:${port}`
})

describe.concurrent.each(transports)("look-ups in a connected cluster ($name)", (on) => {
  it.live(
    "CLN-06 ruling 82 metadata comes from a node that answers, then without delay; and the end of the silence is logged",
    () =>
      Effect.gen(function* () {
        const log = makeLog()
        yield* Effect.gen(function* () {
          const [one, two] = yield* clusterOf(answering, answering)
          const cluster = yield* open(on, { brokers: brokersOf(one!, two!) })
          const ice = frozen()
          one!.behave = ice.behave
          two!.behave = after(50)
          // Asks each of both first, once or more often.
          const first = yield* timed(
            Effect.forEach(Array.from({ length: 20 }), () => cluster.metadata([]), { concurrency: "unbounded" })
          )
          assert.isBelow(first.millis, 2_500)
          assert.isAbove(first.millis, 900)
          for (let again = 0; again < 5; again++) {
            const { millis } = yield* timed(cluster.metadata([]))
            assert.isBelow(millis, 900)
          }
          assert.deepStrictEqual(
            log.lines.filter((line) => line.includes("has not answered")).map((line) => line.replace(/1\.\d/, "1.x")),
            [`Broker ${one!.address} has not answered for 1.x s; other addresses are tried`]
          )
          one!.behave = answering
          ice.thaw()
          yield* Effect.sleep(50)
          assert.match(log.lines.join("\n"), new RegExp(`Broker ${one!.address} answers again after \\d+\\.\\d s`))
        }).pipe(Effect.provide(log.layer))
      })
  )

  it.live("ruling 82 `anyNode` is a node that answers", () =>
    Effect.gen(function* () {
      const [one, two] = yield* clusterOf(answering, answering)
      const cluster = yield* open(on, { brokers: brokersOf(one!, two!) })
      one!.behave = silent
      assert.strictEqual((yield* cluster.anyNode).port, two!.port)
    })
  )

  it.live("CLN-06 ruling 82 a request to a silent coordinator ends when another node is the coordinator", () =>
    Effect.gen(function* () {
      const [one, two] = yield* clusterOf(answering, answering)
      const cluster = yield* open(on, { brokers: brokersOf(two!) })
      const ask = cluster.askCoordinator("group", "g", (broker) => call(broker, "Heartbeat", heartbeat))
      assert.strictEqual((yield* ask).errorCode, 0)
      one!.behave = silent
      const moved = Effect.sleep(1_500).pipe(
        Effect.andThen(
          Effect.sync(() => {
            for (const broker of [one!, two!]) broker.coordinator = 2
          })
        )
      )
      yield* Effect.forkChild(moved)
      const { value, millis } = yield* timed(Effect.flip(ask))
      assert.strictEqual(value.type, "NOT_COORDINATOR")
      assert.isBelow(millis, 4_000)
      assert.strictEqual((yield* ask).errorCode, 0)
    })
  )

  it.live("ruling 82 a node that answers late because it works on an earlier request is not called silent", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const [one] = yield* clusterOf(answering)
      const metadata = Effect.gen(function* () {
        const cluster = yield* open(on, { brokers: brokersOf(one!) })
        one!.behave = (request) => (request.apiKey === apiKey.heartbeat ? undefined : after(1_200)(request))
        const node = yield* cluster.node(1)
        yield* Effect.forkChild(call(node, "Heartbeat", heartbeat))
        yield* Effect.sleep(50)
        yield* cluster.metadata([])
      })
      yield* Effect.provide(metadata, log.layer)
      assert.deepStrictEqual(log.lines, [])
    })
  )

  it.live("ruling 82 a coordinator that stays the coordinator may answer late", () =>
    Effect.gen(function* () {
      const [one, two] = yield* clusterOf(answering, answering)
      const cluster = yield* open(on, { brokers: brokersOf(two!) })
      one!.behave = (request) => (request.apiKey === apiKey.heartbeat ? after(2_300)(request) : request.answer())
      const answer = yield* cluster.askCoordinator("group", "g", (broker) => call(broker, "Heartbeat", heartbeat))
      assert.strictEqual(answer.errorCode, 0)
    })
  )

  it.live("ruling 82 look-ups that nobody waits for any more leave no socket and no request behind", () =>
    Effect.gen(function* () {
      const [one, two] = yield* clusterOf(silent, answering)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const cluster = yield* open(on, { brokers: brokersOf(one!, two!) })
          yield* Effect.forEach(Array.from({ length: 20 }), () => cluster.metadata([]), { concurrency: "unbounded" })
          assert.isAtMost(one!.connections(), 1)
          const waiting = yield* Effect.forkChild(cluster.metadata([]))
          yield* Fiber.interrupt(waiting)
        })
      )
      yield* Effect.sleep(100)
      assert.deepStrictEqual([one!.connections(), two!.connections()], [0, 0])
    })
  )
})
