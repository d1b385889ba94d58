/** A topic is deleted while records wait in it: the event and the log say how many went with it. */
import { assert, describe } from "@effect/vitest"
import { Binding, Broker, type BrokerError, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger, Queue } from "effect"
import { type App, advance, bytes, inTime, orders, scenario, start } from "../bus.ts"
import { Down } from "../kinds.ts"

const retryTopic = "orders.retry-1"

const admin = <A, E>(use: (admin: Broker.Admin) => Effect.Effect<A, E>) =>
  MemoryBroker.MemoryBroker.use((memory) => inTime(Effect.scoped(Effect.flatMap(memory.broker.admin, use))))

const deleted = (topic: string) => admin((topics) => topics.deleteTopics([topic]))

const remade = (topic: string) =>
  Effect.gen(function* () {
    const { createTopic } = yield* MemoryBroker.MemoryBroker
    yield* deleted(topic)
    yield* createTopic(topic, { partitions: 2 })
  })

/** Each record fails, its copy waits for an hour, and its dead letter stays. */
const failing = (consumer: "shared" | "separate" = "shared") =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 hour", maxAttempts: 1 }], consumer }),
    onError: { Down: Route.retry },
    handler: () => Effect.fail(new Down())
  })

/** Without a key, so that a copy goes to the partition of its record. */
const written = (partition: number, values: ReadonlyArray<string>) =>
  MemoryBroker.MemoryBroker.use((memory) =>
    memory.append(
      "orders",
      partition,
      values.map((value) => ({ key: null, value: bytes(value) }))
    )
  )

type Adapt = (event: Broker.ConsumerEvent) => Effect.Effect<Broker.ConsumerEvent>

/** As adapters differ, and clusters. */
const adapters: Readonly<Record<string, Adapt>> = {
  "partitions are revoked": (event) => Effect.succeed(event),
  "partitions are lost": (event) =>
    event._tag === "Revoked" ? Effect.as(event.release, { ...event, _tag: "Lost" as const }) : Effect.succeed(event),
  "partitions move late": (event) =>
    Effect.as(event._tag === "Revoked" ? Effect.sleep("1 minute") : Effect.void, event),
  "topics have no ids": (event) =>
    Effect.succeed(
      event._tag === "Assigned"
        ? { ...event, partitions: event.partitions.map((each) => ({ ...each, topicId: undefined })) }
        : event
    )
}

/** A broker whose sessions report what the adapter makes of their events. */
const adapted = (adapt: Adapt) =>
  MemoryBroker.MemoryBroker.useSync(({ broker }): Broker.Broker["Service"] => ({
    ...broker,
    consumer: (options) =>
      Effect.gen(function* () {
        const session = yield* broker.consumer(options)
        const events = yield* Queue.unbounded<Broker.ConsumerEvent, BrokerError.BrokerError>()
        yield* Queue.take(session.events).pipe(
          Effect.flatMap(adapt),
          Effect.flatMap((event) => Queue.offer(events, event)),
          Effect.forever,
          Effect.forkScoped
        )
        return { ...session, events }
      })
  }))

/** Three records wait in partition 0 of the retry topic, and two in partition 1. */
const waiting = Effect.fnUntraced(function* (
  binding: Binding.Binding<never> = failing(),
  adapter: keyof typeof adapters = "partitions are revoked"
) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", retryTopic]) yield* memory.createTopic(topic, { partitions: 2 })
  const app = yield* Effect.provideService(start(binding), Broker.Broker, yield* adapted(adapters[adapter]!))
  yield* written(0, ["a", "b", "c"])
  yield* written(1, ["d", "e"])
  yield* advance("1 minute")
  return app
})

const goneOf = (app: App) =>
  app
    .of("RecordsGone")
    .map(({ topic, partition, from, to, gone, cause }) => `${topic}-${partition} ${from} to ${to}: ${gone}, ${cause}`)
    .sort()

const five = ["orders.retry-1-0 0 to 3: 3, topic-deleted", "orders.retry-1-1 0 to 2: 2, topic-deleted"]

/** So long it takes at most. */
const tenSeconds = Effect.repeat(advance("1 second"), { times: 10 })

/** The log lines of an effect. */
const logged = Effect.fnUntraced(function* <E, R>(body: Effect.Effect<void, E, R>) {
  const lines: Array<string> = []
  const capture = Logger.make(({ message }) => void lines.push(String(message)))
  yield* Effect.provide(body, Logger.layer([capture]))
  return lines
})

describe("a topic is deleted while records wait in it", () => {
  for (const consumer of ["shared", "separate"] as const) {
    for (const [how, change] of Object.entries({ deleted, "deleted and made again": remade })) {
      scenario(`${consumer} consumer, retry topic ${how}: event and log say how many went with it`, () =>
        Effect.gen(function* () {
          const lines = yield* logged(
            Effect.gen(function* () {
              const app = yield* waiting(failing(consumer))
              yield* change(retryTopic)
              yield* tenSeconds
              assert.deepStrictEqual(goneOf(app), five)
              // Once, however long it lasts.
              yield* advance("1 hour")
              assert.deepStrictEqual(goneOf(app), five)
            })
          )
          const told = (records: number, partition: number, last: number) =>
            `Topic 'orders.retry-1' was deleted, or deleted and made again, and ${records} records that waited in partition ${partition} went with it: offsets 0 to ${last}, as far as the log was known`
          assert.includeMembers(lines, [told(3, 0, 2), told(2, 1, 1)])
        })
      )
    }
  }

  for (const adapter of Object.keys(adapters).filter((name) => name !== "partitions move late")) {
    for (const [how, change] of Object.entries({ deleted, "deleted and made again": remade })) {
      scenario(`where ${adapter}, a retry topic that is ${how} is told of once`, () =>
        Effect.gen(function* () {
          const app = yield* waiting(failing(), adapter)
          yield* change(retryTopic)
          yield* tenSeconds
          yield* advance("1 minute")
          assert.deepStrictEqual(goneOf(app), five)
        })
      )
    }
  }

  scenario("ruling 75 records of the new topic are not among those that went, and what is not known is said", () =>
    Effect.gen(function* () {
      const lines = yield* logged(
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          // The session hears of the new topic only after the poller has asked it for its ends.
          const app = yield* waiting(failing(), "partitions move late")
          yield* remade(retryTopic)
          const records = Array.from({ length: 100 }, (_, index) => ({ key: null, value: bytes(String(index)) }))
          for (const partition of [0, 1]) yield* memory.append(retryTopic, partition, records)
          yield* advance("2 minutes")
          assert.deepStrictEqual(goneOf(app), five)
          assert.deepStrictEqual(
            app.of("RecordsGone").map(({ isLowerBound }) => isLowerBound),
            [true, true]
          )
        })
      )
      assert.lengthOf(
        lines.filter((line) => /and at least \d records that waited/.test(line)),
        2
      )
    })
  )

  scenario("records that were handled before are not among those that went", () =>
    Effect.gen(function* () {
      const app = yield* waiting()
      yield* advance("1 hour")
      yield* advance("1 minute")
      yield* written(0, ["f"])
      yield* advance("1 minute")
      yield* deleted(retryTopic)
      yield* tenSeconds
      assert.deepStrictEqual(goneOf(app), ["orders.retry-1-0 3 to 4: 1, topic-deleted"])
    })
  )

  scenario("a retry topic without waiting records goes without a word", () =>
    Effect.gen(function* () {
      const app = yield* waiting()
      yield* advance("1 hour")
      yield* advance("1 minute")
      yield* remade(retryTopic)
      yield* advance("1 minute")
      assert.deepStrictEqual(goneOf(app), [])
    })
  )

  scenario("unread records of a main topic went with it", () =>
    Effect.gen(function* () {
      const app = yield* waiting()
      yield* app.connector.pause("orders")
      yield* written(0, ["f", "g"])
      yield* advance("1 minute")
      yield* remade("orders")
      yield* tenSeconds
      assert.deepStrictEqual(goneOf(app), ["orders-0 3 to 5: 2, topic-deleted"])
    })
  )

  scenario("partitions that another member takes over, and those of a lost session, went nowhere", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const app = yield* waiting()
      const other = yield* start(failing())
      yield* advance("1 minute")
      assert.isAbove(app.of("PartitionReleased").filter(({ topic }) => topic === retryTopic).length, 0)
      yield* memory.inject({ _tag: "PartitionLost", topic: retryTopic, partition: 0 })
      yield* memory.inject({ _tag: "PartitionLost", topic: retryTopic, partition: 1 })
      yield* advance("1 minute")
      assert.isAbove(app.of("PartitionLost").length + other.of("PartitionLost").length, 0)
      assert.deepStrictEqual([...goneOf(app), ...goneOf(other)], [])
    })
  )
})
