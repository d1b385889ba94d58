/**
 * RCH-11 CLN-08: a Nest service of two topics moves from Nest's own Kafka transport to one shared consumer and back, pod by pod under load. Nest's transport reads all topics with one
 * kafkajs consumer, whose leader gives every member partitions of all of them.
 */
import "reflect-metadata"
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { EventBusModule, EventBusService } from "@eventbus/nestjs"
import { EventBusContext, EventBusTransport } from "@eventbus/nestjs/transport"
import { Controller, type INestMicroservice, Module } from "@nestjs/common"
import { NestFactory } from "@nestjs/core"
import { Ctx, EventPattern, type KafkaContext, Payload, ServerKafka } from "@nestjs/microservices"
import { Effect, Fiber } from "effect"
import * as Bus from "../../../test/integration/bus.ts"
import * as Transport from "../../../test/transport.ts"
import * as BareClient from "../../kafkajs/test/bareClient.ts"
import { quiet } from "./app.ts"

const pods = 2
const perSecond = 300
const stay = Effect.sleep("700 millis")

/** A call of a handler. */
interface Handled {
  /** The topic and the number of the record. */
  readonly record: string
  /** The pattern of the method that got it. */
  readonly pattern: string
  readonly client: "old" | "connector"
  readonly tier: number
  readonly atMillis: number
}

interface Service {
  readonly bootstrap: ReadonlyArray<string>
  readonly name: string
  readonly topics: readonly [orders: string, refunds: string]
  readonly handled: Array<Handled>
  /** Joins of old pods, by which the records are bounded that were in flight when the group rebalanced. */
  oldJoins: number
  failing: boolean
  /** Why consumers of new pods came to a stop, as one does that an old leader gives partitions of a topic that it does not read. */
  readonly crashes: Array<string>
}

class Down extends Error {}

/** The controllers, the same in old and new pods. One record in 40 needs a retry topic, where there is one. */
const controllersOf = (service: Service) => {
  const [orders, refunds] = service.topics
  const report = (pattern: string, n: number, context: KafkaContext) => {
    const tier = context instanceof EventBusContext ? context.getDelivery().tier : undefined
    if (service.failing && tier === 0 && n % 40 === 7) throw new Down()
    const client = tier === undefined ? "old" : "connector"
    const record = `${context.getTopic()} ${n}`
    service.handled.push({ record, pattern, client, tier: tier ?? 0, atMillis: Date.now() })
  }
  @Controller()
  class Orders {
    @EventPattern<string>(orders)
    onOrder(@Payload() n: number, @Ctx() context: KafkaContext) {
      report(orders, Number(n), context)
    }
  }
  @Controller()
  class Refunds {
    @EventPattern<string>(refunds)
    onRefund(@Payload() n: number, @Ctx() context: KafkaContext) {
      report(refunds, Number(n), context)
    }
  }
  return [Orders, Refunds]
}

interface Pod {
  readonly isReady: () => boolean
  readonly leave: Effect.Effect<void>
}

const closedOnce = (app: INestMicroservice) =>
  Effect.tap(Effect.cached(Effect.promise(() => app.close())), (leave) => Effect.addFinalizer(() => leave))

/** Nest's own transport, which also says what its consumer joins. */
class ObservedServer extends ServerKafka {
  owned = 0
  readonly #service: Service

  constructor(service: Service, options: ConstructorParameters<typeof ServerKafka>[0]) {
    super(options)
    this.#service = service
  }

  protected override registerConsumerEventListeners() {
    super.registerConsumerEventListeners()
    this.consumer?.on("consumer.group_join", ({ payload: { memberAssignment } }) => {
      this.#service.oldJoins++
      this.owned = Object.values(memberAssignment).flat().length
    })
  }
}

/** A pod on Nest's own transport, which commits every ten records. */
const oldPod = Effect.fnUntraced(function* (service: Service) {
  class Root {}
  Module({ controllers: controllersOf(service) })(Root)
  const server = new ObservedServer(service, {
    client: { clientId: "billing", brokers: [...service.bootstrap] },
    consumer: { groupId: service.name, heartbeatInterval: 300, maxWaitTimeInMs: 200 },
    subscribe: { fromBeginning: true },
    run: { autoCommitThreshold: BareClient.commitThreshold }
  })
  const app = yield* Effect.promise(() => NestFactory.createMicroservice(Root, { ...quiet, strategy: server }))
  const leave = yield* closedOnce(app)
  yield* Effect.promise(() => app.listen())
  return { isReady: () => server.owned > 0, leave } satisfies Pod
})

const own = "eventbus-cooperative-sticky"

/** A pod on the connector. Step 1 lists the protocol of kafkajs, too, step 2 does not, and step 3 has a consumer for each topic. */
const newPod = Effect.fnUntraced(function* (service: Service, step: 1 | 2 | 3) {
  const assigned = new Set<string>()
  class Root {}
  Module({
    imports: [
      EventBusModule.forRoot({
        kafka: { clientId: "billing-server", brokers: [...service.bootstrap], transport: Transport.name },
        ...{ log: "off", signals: [] },
        onEvent: (event) => {
          if (event._tag === "SessionCrashed") service.crashes.push(event.error.message)
          if (event._tag === "PartitionAssigned") assigned.add(`${event.topic}-${event.partition}`)
        }
      })
    ],
    controllers: controllersOf(service)
  })(Root)
  const app = yield* Effect.promise(() =>
    NestFactory.createMicroservice(Root, {
      ...quiet,
      inject: [EventBusService],
      useFactory: (bus: EventBusService) => ({
        strategy: new EventBusTransport(bus, {
          groupId: `${service.name}-server`,
          ...(step < 3 && { sharedConsumer: "billing" }),
          consumer: {
            heartbeatInterval: "300ms",
            ...(step === 1 && { partitionAssignmentStrategy: [own, "RoundRobinAssigner"] }),
            retry: { consumer: "separate", blocking: { maxAttempts: 1 }, tiers: ["300ms"] }
          }
        })
      })
    })
  )
  const leave = yield* closedOnce(app)
  yield* Effect.promise(() => app.listen())
  const isMain = (place: string) => service.topics.some((topic) => /^-\d+$/.test(place.slice(topic.length)))
  return { isReady: () => Array.from(assigned).some(isMain), leave } satisfies Pod
})

/** Publishes to both topics until it is stopped. Answers how many to each. */
const load = Effect.fnUntraced(function* ({ bootstrap, topics }: Service) {
  const publish = yield* BareClient.publisher(bootstrap)
  const begin = Date.now()
  let published = 0
  let isOpen = true
  const tick = Effect.gen(function* () {
    const due = Math.floor(((Date.now() - begin) / 1_000) * perSecond)
    const values = Array.from({ length: due - published }, (_, index) => String(published + index))
    if (values.length > 0) for (const topic of topics) yield* publish(topic, values)
    published += values.length
    yield* Effect.sleep("50 millis")
  })
  const running = yield* Effect.forkScoped(Effect.whileLoop({ while: () => isOpen, body: () => tick, step: () => {} }))
  return Effect.suspend(() => {
    isOpen = false
    return Effect.map(Fiber.join(running), () => published)
  })
})

/** Replaces pods, the oldest first: the new one works before the old one leaves. */
const replace = Effect.fnUntraced(function* <E, R>(
  running: Array<Pod>,
  count: number,
  start: Effect.Effect<Pod, E, R>
) {
  for (let replaced = 0; replaced < count; replaced++) {
    const next = yield* start
    yield* Bus.until("the new pod works", next.isReady)
    yield* stay
    running.push(next)
    yield* running.shift()!.leave
    yield* stay
  }
})

/** Records that were handled more than once, by the client that had them first. */
const repeatedOf = (handled: ReadonlyArray<Handled>) => {
  const firsts = new Map<string, Handled["client"]>()
  const repeated = { old: 0, connector: 0 }
  for (const { record, client } of handled.toSorted((a, b) => a.atMillis - b.atMillis)) {
    const first = firsts.get(record)
    if (first === undefined) firsts.set(record, client)
    else repeated[first]++
  }
  return { firsts, repeated }
}

KafkaSuite.shared("a Nest service of two topics that moves to the connector and back", (bootstrap) => {
  Bus.story(
    bootstrap,
    "RCH-11 CLN-08 pod by pod under load: nothing is lost, each record reaches the method of its pattern, and only what was in flight in an old pod is repeated",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("nest-roll")
        const topics = [`${name}-orders`, `${name}-refunds`] as const
        const service: Service = { bootstrap, name, topics, handled: [], oldJoins: 0, failing: true, crashes: [] }
        const { handled } = service
        yield* Bus.createTopic(topics[0], 4)
        yield* Bus.createTopic(topics[1], 3)
        const running: Array<Pod> = []
        for (let started = 0; started < pods; started++) running.push(yield* oldPod(service))
        yield* Bus.until("the old pods work", () => running.every(({ isReady }) => isReady()))
        const stop = yield* load(service)
        yield* stay

        yield* replace(running, pods, newPod(service, 1))
        yield* replace(running, pods, newPod(service, 2))
        yield* replace(running, pods, newPod(service, 3))
        yield* replace(running, pods, newPod(service, 2))
        yield* replace(running, pods, newPod(service, 1))
        service.failing = false
        for (const topic of topics) yield* Bus.lagIsZero(`${name}-server.retry`, `${topic}.retry-1`)
        yield* replace(running, pods, oldPod(service))
        const published = yield* stop
        for (const topic of topics) yield* Bus.lagIsZero(`${name}-server`, topic)

        const expected = topics.flatMap((topic) => Array.from({ length: published }, (_, n) => `${topic} ${n}`))
        const { firsts, repeated } = repeatedOf(handled)
        const lost = expected.filter((record) => !firsts.has(record))
        const [inFlight, inTiers] = [
          BareClient.commitThreshold * service.oldJoins,
          handled.filter(({ tier }) => tier > 0)
        ]
        console.log(
          `Nest: ${published} records in each of two topics, ${lost.length} lost, repeated ${JSON.stringify(repeated)} of ${inFlight} in flight, ${inTiers.length} handled in retry topics`
        )
        assert.deepStrictEqual(service.crashes, [])
        assert.deepStrictEqual(lost, [])
        assert.strictEqual(repeated.connector, 0)
        assert.isAtMost(repeated.old, inFlight)
        assert.deepStrictEqual(
          handled.filter(({ record, pattern }) => record.split(" ")[0] !== pattern),
          []
        )
        assert.deepStrictEqual(new Set(inTiers.map(({ pattern }) => pattern)), new Set(topics))
        assert.deepStrictEqual(new Set(handled.map(({ client }) => client)), new Set(["old", "connector"]))
      }),
    180_000
  )
})
