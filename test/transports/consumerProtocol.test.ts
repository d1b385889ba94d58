/** Groups that the broker assigns (KIP-848), on both transports: how fast a member gets its part, a live group that moves to the protocol and back, static members, and a broker without it. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, type BrokerError, RetryPolicy, Route, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect, Fiber, Layer, Logger, Queue } from "effect"
import { connect } from "../../packages/kafka-client/src/internal/connection/cluster.ts"
import { securedOptions } from "../../packages/kafka-client/src/internal/connection/security.ts"
import { call } from "../../packages/kafka-client/src/internal/wire/requests.ts"
import * as Bus from "../integration/bus.ts"
import { answering, makeFakeBroker } from "./fakeBroker.ts"
import { type Tested, transports } from "./transports.ts"

class Down extends Data.TaggedError("Down") {}

type Protocol = Broker.GroupProtocol

/** How often each record was handled, and by which pods. */
class Ledger {
  readonly times = new Map<string, number>()
  readonly byPod = new Map<number, number>()
  retried = 0

  handle(value: string, pod: number, tier: number): void {
    this.times.set(value, (this.times.get(value) ?? 0) + 1)
    this.byPod.set(pod, this.of(pod) + 1)
    if (tier > 0) this.retried++
  }

  of(pod: number): number {
    return this.byPod.get(pod) ?? 0
  }
}

/** One record in 20 is handled in a retry topic. */
const bindingOf = (name: string, ledger: Ledger, pod: number, groupProtocol: Protocol) =>
  Binding.make(name, {
    ...{ topic: name, groupId: name, value: Serde.string, groupProtocol },
    ...(groupProtocol === "classic" && { heartbeatInterval: "300 millis" as const }),
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [{ delay: "300 millis", maxAttempts: 1 }]
    }),
    handler: ({ value, tier }) =>
      tier === 0 && Number(value) % 20 === 7
        ? Effect.fail(new Down())
        : Effect.sync(() => ledger.handle(value, pod, tier)),
    onError: { Down: Route.retry }
  })

/** Publishes 200 records a second until it is told to stop; then says how many. */
const load = Effect.fnUntraced(function* (name: string) {
  const { sendAll } = yield* (yield* Broker.Broker).producer()
  let published = 0
  let isOpen = true
  const publish = Effect.gen(function* () {
    const values = Array.from({ length: 10 }, () => Buffer.from(String(published++)))
    yield* sendAll(values.map((value) => ({ topic: name, key: value, value })))
    yield* Effect.sleep("50 millis")
  })
  const running = yield* Effect.forkScoped(
    Effect.whileLoop({ while: () => isOpen, body: () => publish, step: () => {} })
  )
  return Effect.suspend(() => {
    isOpen = false
    return Effect.map(Fiber.join(running), () => published)
  })
})

/** Waits until each published record is handled, and says which were not handled once. */
const unevenly = Effect.fnUntraced(function* (ledger: Ledger, published: number) {
  const all = Array.from({ length: published }, (_, index) => String(index))
  yield* Bus.until("every record is handled", () => all.every((value) => ledger.times.has(value)))
  return all.filter((value) => ledger.times.get(value) !== 1)
})

const on = <A, E, R>({ layer }: Tested, brokers: ReadonlyArray<string>, effect: Effect.Effect<A, E, R>) =>
  effect.pipe(Effect.scoped, Effect.provide(Layer.merge(layer({ brokers: [...brokers] }), Logger.layer([]))))

const typeOf = (groupId: string) =>
  Effect.flatMap(Broker.Broker, (broker) =>
    Effect.scoped(Effect.flatMap(broker.admin, (admin) => Effect.map(admin.describeGroup(groupId), ({ type }) => type)))
  )

const aStep = { within: "20 seconds" } as const

KafkaSuite.shared("a group that the broker assigns", (brokers) => {
  describe.skipIf(!KafkaSuite.hasConsumerProtocol).each(transports)("$name", (transport) => {
    it.live(
      "CLN-10 a second member has its half of the partitions within 1.5 s, with a heartbeat interval of 1 s, and nothing is handled twice",
      () =>
        Effect.gen(function* () {
          const name = Bus.fresh("second-member")
          const ledger = new Ledger()
          yield* Bus.createTopic(name, 6)
          const stop = yield* load(name)
          const first = yield* Bus.start(bindingOf(name, ledger, 1, "consumer"))
          yield* Bus.until("the first member works", () => ledger.of(1) > 50)
          const startedAt = performance.now()
          const second = yield* Bus.start(bindingOf(name, ledger, 2, "consumer"))
          const owned = () => second.of("PartitionAssigned").filter(({ topic }) => topic === name).length
          yield* Bus.until("the second member has its half", () => owned() === 3, aStep)
          const tookMillis = Math.round(performance.now() - startedAt)
          console.log(`${transport.name}: the second member has its half after ${tookMillis} ms`)
          yield* Bus.until("the second member works", () => ledger.of(2) > 100)
          assert.strictEqual(first.of("PartitionLost").length, 0)
          assert.deepStrictEqual(yield* unevenly(ledger, yield* stop), [])
          assert.isAtMost(tookMillis, 1_500)
        }).pipe((test) => on(transport, brokers, test)),
      60_000
    )

    it.live(
      "CLN-12 a live group moves from the classic protocol to the consumer protocol and back, pod by pod under load: every pod works, nothing is lost, and nothing is handled twice",
      () =>
        Effect.gen(function* () {
          const name = Bus.fresh("moves")
          const ledger = new Ledger()
          yield* Bus.createTopic(name, 6)
          const stop = yield* load(name)
          let pods = 0
          const start = Effect.fnUntraced(function* (protocol: Protocol) {
            const pod = ++pods
            return { ...(yield* Bus.start(bindingOf(name, ledger, pod, protocol))), pod }
          })
          const running = [yield* start("classic"), yield* start("classic")]
          /** Each pod that runs handles records: none starves. */
          const allWork = Effect.suspend(() => {
            const before = running.map(({ pod }) => ledger.of(pod))
            return Bus.until(
              `pods ${running.map(({ pod }) => pod).join(", ")} work`,
              () => running.every(({ pod }, index) => ledger.of(pod) > before[index]! + 20),
              aStep
            )
          })
          yield* allWork
          const types = [yield* typeOf(name)]
          for (const protocol of ["consumer", "consumer", "classic", "classic"] as const) {
            running.push(yield* start(protocol))
            yield* allWork
            types.push(yield* typeOf(name))
            yield* running.shift()!.close
            yield* allWork
          }
          types.push(yield* typeOf(name))
          assert.deepStrictEqual(types, ["classic", "consumer", "consumer", "consumer", "consumer", "classic"])
          assert.deepStrictEqual(yield* unevenly(ledger, yield* stop), [])
          assert.isAbove(ledger.retried, 0)
        }).pipe((test) => on(transport, brokers, test)),
      120_000
    )

    it.live(
      "CLN-11 a static member whose former process did not leave gets its partitions when the session of that one is over, and says meanwhile what it waits for",
      () =>
        Effect.gen(function* () {
          const name = Bus.fresh("crashed")
          yield* Bus.createTopic(name, 2)
          const cluster = yield* connect(securedOptions({ brokers: [...brokers] }, transport.open))
          // It joins, and no heartbeat follows.
          yield* cluster.askCoordinator("group", name, (coordinator) =>
            call(coordinator, "ConsumerGroupHeartbeat", {
              ...{ groupId: name, memberId: "crashed", memberEpoch: 0, groupInstanceId: "pod-0" },
              ...{ rebalanceTimeout: 60_000, topics: [name], assignor: null, owned: [] }
            })
          )
          const startedAt = performance.now()
          const lines: Array<string> = []
          const { events } = yield* (yield* Broker.Broker)
            .consumer({ groupId: name, topics: [name], groupProtocol: "consumer", groupInstanceId: "pod-0" })
            .pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])))
          const first = yield* Queue.take(events)
          const waitedMillis = performance.now() - startedAt
          assert.strictEqual(first._tag === "Assigned" && first.partitions.length, 2)
          // The group's session timeout in tests.
          assert.isAbove(waitedMillis, 4_000)
          assert.strictEqual(lines.filter((line) => line.includes(`has group.instance.id 'pod-0'`)).length, 1)
        }).pipe((test) => on(transport, brokers, test)),
      60_000
    )
  })
})

/** Joins, and waits for what ends the session. */
const endOf = Effect.fnUntraced(function* (options: Broker.ConsumerOptions) {
  const { events } = yield* (yield* Broker.Broker).consumer(options)
  return yield* Effect.flip(Effect.forever(Queue.take(events)))
}, Effect.scoped)

const assertNamed = (error: BrokerError.BrokerError, groupId: string, reason: string): void => {
  assert.strictEqual(error._tag, "UnexpectedBrokerError")
  assert.include(error.message, `groupProtocol "consumer" of group '${groupId}': ${reason}`)
  assert.include(error.message, 'allowed is "classic"')
}

const isNamed =
  "CLN-10 CLN-18 a broker without the consumer protocol is named, with the option, its value and what is allowed"

describe.each(transports)("$name", (transport) => {
  it.live(isNamed, () =>
    Effect.gen(function* () {
      const { address, port } = yield* makeFakeBroker(answering)
      const options = { groupId: "billing", topics: ["orders"], groupProtocol: "consumer" } as const
      const error = yield* on(transport, [address], endOf(options))
      assertNamed(error, "billing", `the broker at 127.0.0.1:${port} does not speak ConsumerGroupHeartbeat`)
    }).pipe(Effect.scoped)
  )
})

describe.skipIf(KafkaSuite.hasConsumerProtocol)("an older Kafka", () => {
  KafkaSuite.shared("without the consumer protocol", (brokers) => {
    it.live.each(transports)(`${isNamed} ($name)`, (transport) =>
      Effect.gen(function* () {
        const name = Bus.fresh("old")
        yield* Bus.createTopic(name, 1)
        assertNamed(yield* endOf({ groupId: name, topics: [name], groupProtocol: "consumer" }), name, "the broker")
      }).pipe((test) => on(transport, brokers, test))
    )
  })
})

describe.skipIf(!KafkaSuite.hasConsumerProtocol)("brokers that move no group", () => {
  KafkaSuite.own("to another protocol", { config: { "group.consumer.migration.policy": "disabled" } }, (it) => {
    it.effect("CLN-12 a group with members is refused with what to set; without members it takes either protocol", () =>
      Effect.gen(function* () {
        const { bootstrap } = yield* RealKafka.RealKafka
        const transport = transports[1]!
        yield* Effect.gen(function* () {
          const name = Bus.fresh("refused")
          yield* Bus.createTopic(name, 2)
          const joined = (groupProtocol: Protocol) =>
            Effect.gen(function* () {
              const broker = yield* Broker.Broker
              const { events } = yield* broker.consumer({ groupId: name, topics: [name], groupProtocol })
              const first = yield* Queue.take(events)
              assert.strictEqual(first._tag === "Assigned" && first.partitions.length, 2)
              assert.strictEqual(yield* typeOf(name), groupProtocol)
            })
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* joined("classic")
              const error = yield* endOf({ groupId: name, topics: [name], groupProtocol: "consumer" })
              assertNamed(error, name, "the group has members of the classic protocol, and the broker does not move it")
              assert.include(error.message, "group.consumer.migration.policy")
            })
          )
          yield* Effect.scoped(joined("consumer"))
          yield* Effect.scoped(joined("classic"))
        }).pipe((test) => on(transport, bootstrap, test))
      })
    )
  })
})
