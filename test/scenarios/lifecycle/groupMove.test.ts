/** Findings of `plan --check` and of validation while a group moves between the connector and another client. */
import { assert, describe } from "@effect/vitest"
import * as Configuration from "@eventbus/config/Configuration"
import { Binding, type BindingOptions, Broker, EventBusError, Plan, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, inTime, publish, scenario, start } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

const binding = (
  settings: Partial<BindingOptions.Settings<unknown, string>> & {
    readonly handler?: () => Effect.Effect<void, Down>
  } = {}
) =>
  Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", value: Serde.string },
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute"], consumer: "separate" }),
    onError: { Down: Route.retry },
    handler: () => Effect.void,
    ...settings
  })

const moving = ["eventbus-cooperative-sticky", "RoundRobinAssigner"] as const

const waiting = (planned: Binding.Binding<unknown>, of: Plan.Finding["code"] = "records-waiting") =>
  Effect.gen(function* () {
    const { broker } = yield* MemoryBroker.MemoryBroker
    const found = yield* inTime(Effect.provideService(Plan.check(Plan.make(planned)), Broker.Broker, broker))
    return found.filter(({ code }) => code === of).map(({ severity, message }) => `${severity}: ${message}`)
  })

describe("a group that moves between clients", () => {
  scenario(
    "C51 CLN-08 plan --check counts the records that wait in retry topics, and says when the way back is free",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const stepOne = binding({ partitionAssignmentStrategy: moving })
        let isDown = true
        yield* start(binding({ handler: () => (isDown ? Effect.fail(new Down()) : Effect.void) }))
        yield* publish("orders", ["o-1", "o-2", "o-3"])
        yield* advance("10 seconds")
        const [found, ...others] = yield* waiting(stepOne)
        assert.deepStrictEqual(others, [])
        assert.include(found, "warning: 3 records of the retry topics are not handled (orders.retry-1: 3)")
        isDown = false
        yield* advance("2 minutes")
        assert.deepStrictEqual(yield* waiting(stepOne), [
          "info: No record waits in a retry topic: none is left behind when the group moves back to the other client."
        ])
        assert.deepStrictEqual(yield* waiting(binding()), [])
      })
  )

  scenario("C51 plan --check warns of records that Spring has left in its retry topics, whatever their names are", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const admin = yield* memory.broker.admin
      const topics = [
        "orders-retry-5000",
        "orders-retry-0",
        "orders-retry",
        "orders-retry-9",
        "orders-retried",
        "old-retry"
      ]
      for (const topic of ["orders", ...topics]) {
        yield* memory.createTopic(topic)
        yield* memory.append(
          topic,
          0,
          [1, 2, 3].map(() => ({ key: null, value: new Uint8Array() }))
        )
      }
      const left = (planned: Binding.Binding<unknown>) =>
        Effect.map(waiting(planned, "spring-records-waiting"), (found) =>
          found.map((line) =>
            line.replace(
              " The binding does not read them: when the last old pod has stopped, empty the topic in that group (docs/guide/move-from-spring.md#move-the-group).",
              ""
            )
          )
        )
      const commit = (groupId: string, topic: string, offset: bigint) =>
        admin.setCommittedOffsets(groupId, [{ topic, partition: 0, offset }])
      assert.deepStrictEqual(yield* left(binding()), [])
      yield* commit("billing-retry-5000", "orders-retry-5000", 1n)
      yield* commit("billing-retry-0", "orders-retry-0", 2n)
      // Spring commits nothing before the first record is handled.
      yield* commit("billing-retry", "orders", 0n)
      yield* commit("billing-retry-9", "orders-retry-9", 3n)
      yield* commit("billing-retried", "orders-retried", 0n)
      yield* commit("former-retry-9", "orders-retry-9", 1n)
      const three = [
        "warning: 3 records of Spring's retry topic 'orders-retry' wait for group 'billing-retry'.",
        "warning: 1 record of Spring's retry topic 'orders-retry-0' waits for group 'billing-retry-0'.",
        "warning: 2 records of Spring's retry topic 'orders-retry-5000' wait for group 'billing-retry-5000'."
      ]
      assert.deepStrictEqual(yield* left(binding()), three)
      assert.deepStrictEqual(yield* left(binding({ partitionAssignmentStrategy: moving })), three)
      assert.include(
        yield* left(binding({ adopts: ["former"] })),
        "warning: 2 records of Spring's retry topic 'orders-retry-9' wait for group 'former-retry-9'."
      )
    })
  )

  scenario(
    "C51 CLN-08 plan --check names the topics that the other members of the group read and the binding does not",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        const admin = yield* memory.broker.admin
        for (const topic of ["orders", "orders.retry", "payments", "elsewhere"]) yield* memory.createTopic(topic)
        const member = (topics: ReadonlyArray<string>, isConnector = false) => ({
          ...{
            memberId: topics.join(),
            groupInstanceId: undefined,
            clientId: "old",
            assignment: [],
            topics,
            isConnector
          }
        })
        const found = (
          planned: Binding.Binding<unknown>,
          protocol: string,
          members: ReadonlyArray<ReturnType<typeof member>>
        ) => {
          const group = { groupId: "billing", type: "classic", state: "Stable", protocol, members } as const
          const described = { ...admin, describeGroup: () => Effect.succeed(group) }
          return Effect.map(
            inTime(
              Effect.provideService(Plan.check(Plan.make(planned)), Broker.Broker, {
                ...memory.broker,
                admin: Effect.succeed(described)
              })
            ),
            (all) =>
              all.flatMap(({ code, severity, message }) =>
                code === "topic-of-other-members" ? [`${severity}: ${message}`] : []
              )
          )
        }
        const old = member(["orders", "orders.retry"])
        const stepOne = binding({ partitionAssignmentStrategy: moving })
        const [error, ...more] = yield* found(stepOne, "RoundRobinAssigner", [old])
        assert.deepStrictEqual(more, [])
        assert.match(error ?? "", /^error: Group 'billing' has 1 member of client 'old' that read topic 'orders.retry'/)
        assert.match(
          error ?? "",
          /FOREIGN_ASSIGNMENT.*topic: \[orders, orders.retry\] \(docs\/guide\/move-from-kafkajs.md#/
        )
        const both = binding({ topic: ["orders", "orders.retry"], partitionAssignmentStrategy: moving })
        assert.deepStrictEqual(yield* found(both, "RoundRobinAssigner", [old]), [])
        // Another binding of the connector may read another topic, and so may a Java client beside one that stays.
        assert.deepStrictEqual(yield* found(stepOne, "RoundRobinAssigner", [member(["payments"], true)]), [])
        assert.deepStrictEqual(yield* found(binding({ partitionAssignmentStrategy: ["range"] }), "range", [old]), [])
        const java = binding({ partitionAssignmentStrategy: ["eventbus-cooperative-sticky", "range"] })
        assert.match((yield* found(java, "range", [old]))[0] ?? "", /^warning: .*nobody reads that topic/)
        // The old members are gone: the offsets of the group tell what they read.
        yield* memory.append("orders.retry", 0, [{ key: null, value: new Uint8Array() }])
        yield* admin.setCommittedOffsets("billing", [{ topic: "orders.retry", partition: 0, offset: 0n }])
        const [warning] = yield* found(stepOne, "", [])
        assert.match(warning ?? "", /^warning: 1 record of topic 'orders.retry' waits for group 'billing'/)
        yield* admin.setCommittedOffsets("billing", [{ topic: "orders.retry", partition: 0, offset: 1n }])
        assert.deepStrictEqual(yield* found(stepOne, "", []), [])
      })
  )

  scenario("CLN-08 ruling 80 retry topics that another client's leader would share out are refused", () =>
    Effect.gen(function* () {
      yield* (yield* MemoryBroker.MemoryBroker).createTopic("orders")
      const shared = binding({
        partitionAssignmentStrategy: moving,
        retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 minute"] })
      })
      const refused = yield* Effect.flip(start(shared))
      assert.instanceOf(refused, EventBusError.ConfigurationValidation)
      assert.deepStrictEqual(
        refused.issues.map(({ path, found }) => [path, found]),
        [["retry.consumer", "'shared'"]]
      )
      const unknown = yield* Effect.flip(
        start(binding({ partitionAssignmentStrategy: ["rnage", "range"] as unknown as typeof moving }))
      )
      assert.instanceOf(unknown, EventBusError.ConfigurationValidation)
      assert.deepStrictEqual(
        unknown.issues.map(({ path }) => path),
        ["partitionAssignmentStrategy"]
      )
      assert.include(unknown.issues[0]?.allowed, "RoundRobinAssigner")
    })
  )

  scenario("CLN-08 a file lists the protocols, and is refused with its keys", () =>
    Effect.gen(function* () {
      const of = (retry: string) =>
        Configuration.parse(
          `eventbus: { bindings: { orders: { topic: orders, group-id: billing, partition-assignment-strategy: [${moving.join()}], retry: ${retry} } } }`
        )
      const [orders] = Configuration.withoutHandlers(yield* of("{ consumer: separate }"))
      assert.deepStrictEqual(orders?.definition.partitionAssignmentStrategy, moving)
      const refused = yield* Effect.flip(of("{ consumer: shared }"))
      assert.match(refused.message, /retry.*consumer.*shared.*allowed is "separate" with RoundRobinAssigner/)
    }).pipe(Effect.orDie)
  )
})
