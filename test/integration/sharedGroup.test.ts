/** The connector in a group with other clients: kafkajs, and Java's client under the protocol of KIP-848. */
import { assert } from "@effect/vitest"
import { Binding, type BindingOptions, Plan, RetryPolicy, Serde } from "@eventbus/core"
import { JavaClient } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as BareClient from "../../packages/kafkajs/test/bareClient.ts"
import * as Bus from "./bus.ts"

/** A consumer of the topic in the group of the same name. */
const reader = (
  name: string,
  handled: Array<string>,
  settings: Pick<BindingOptions.Settings<unknown, string>, "partitionAssignmentStrategy"> = {}
) =>
  Binding.make(name, {
    ...{ topic: name, groupId: name, value: Serde.string, retry: RetryPolicy.blocking() },
    ...{ sessionTimeout: "6 seconds", heartbeatInterval: "500 millis" },
    ...settings,
    handler: ({ value }) => Effect.sync(() => void handled.push(value))
  })

const findings = (binding: Binding.Binding<unknown>) =>
  Effect.map(Plan.check(Plan.make(binding)), (all) => all.filter(({ code }) => code === "group-protocol"))

/** The connector has failed, and says so in its log, its state and its health, each with these words. */
const saysSo = Effect.fnUntraced(function* (app: Bus.App, words: ReadonlyArray<string>) {
  const health = yield* app.connector.health
  assert.strictEqual(health.status, "DOWN")
  const [reason] = health.reasons
  assert.strictEqual(reason?._tag, "ConsumerCrashed")
  const { consumers } = (yield* app.connector.listBindings)[0]!
  const log = app.log.filter(({ level }) => level === "Error").map(({ message }) => message)
  for (const text of [JSON.stringify(health), JSON.stringify(consumers), log.join("\n")]) {
    for (const word of words) assert.include(text, word)
  }
})

const isDown = (app: Bus.App) => Effect.map(app.connector.health, ({ status }) => status === "DOWN")

KafkaSuite.shared("a group with other clients", (bootstrap) => {
  Bus.story(
    bootstrap,
    "C51 CLN-07 beside a Java member with group.protocol=consumer the broker assigns: the connector reads what it is given, and nothing is lost or repeated",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("kip848")
        const partitions = 6
        yield* Bus.createTopic(name, partitions)
        const java = yield* JavaClient.join(bootstrap, [name], name, { "group.protocol": "consumer" })
        yield* Bus.until("Java owns all partitions", () => java.owned()?.length === partitions)
        const handled: Array<string> = []
        const binding = reader(name, handled)
        const app = yield* Bus.start(binding)
        const owned = () => app.of("PartitionAssigned").length - app.of("PartitionReleased").length
        yield* Bus.until("the partitions are shared", () => owned() === 3 && java.owned()?.length === 3, {
          otherwise: () => ({ owned: owned(), java: java.owned(), log: app.log })
        })
        const [finding] = yield* findings(binding)
        assert.strictEqual(finding?.severity, "info")
        assert.match(finding?.message ?? "", /1 member of client 'consumer-kip848-.*'.*group\.protocol=consumer/)
        yield* Bus.publish(Bus.numbered(name, partitions, 600))
        yield* Bus.until("all is read", () => handled.length + java.handled().length >= 600)
        yield* java.leave
        yield* Bus.until("the connector has all partitions", () => owned() === partitions)
        yield* Bus.publish(Bus.numbered(name, partitions, 300, 600))
        yield* Bus.lagIsZero(name, name)
        const all = [...handled, ...java.handled().map(({ value }) => value)]
        assert.deepStrictEqual(
          all.map(Number).sort((a, b) => a - b),
          Array.from({ length: 900 }, (_, n) => n)
        )
        assert.deepStrictEqual(app.of("PartitionLost"), [])
      })
  )

  Bus.story(
    bootstrap,
    "C51 CLN-07 a Java member with group.protocol=consumer joins the connector's group, and leaves it again: nothing is lost or repeated",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("upgrade")
        const partitions = 6
        yield* Bus.createTopic(name, partitions)
        const handled: Array<string> = []
        const app = yield* Bus.start(reader(name, handled))
        const owned = () => app.of("PartitionAssigned").length - app.of("PartitionReleased").length
        yield* Bus.until("the connector has all partitions", () => owned() === partitions)
        const java = yield* JavaClient.join(bootstrap, [name], name, { "group.protocol": "consumer" })
        yield* Bus.publish(Bus.numbered(name, partitions, 600))
        yield* Bus.until("the partitions are shared", () => owned() === 3 && java.owned()?.length === 3, {
          otherwise: () => ({ owned: owned(), java: java.owned(), log: app.log })
        })
        yield* Bus.publish(Bus.numbered(name, partitions, 600, 600))
        yield* Bus.until("Java reads", () => java.handled().length > 0)
        yield* java.leave
        yield* Bus.until("the connector has all partitions", () => owned() === partitions)
        yield* Bus.publish(Bus.numbered(name, partitions, 300, 1200))
        yield* Bus.lagIsZero(name, name)
        const all = [...handled, ...java.handled().map(({ value }) => value)]
        assert.deepStrictEqual(
          all.map(Number).sort((a, b) => a - b),
          Array.from({ length: 1_500 }, (_, n) => n)
        )
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      })
  )

  Bus.story(
    bootstrap,
    "CLN-07 ruling 80 a group of kafkajs refuses the connector: within 10 s log, state and health name the group, the other client, both protocols and the next step",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("refused")
        yield* Bus.createTopic(name, 2)
        const plain = yield* BareClient.join(bootstrap, name, [name], () => {})
        yield* Bus.until("kafkajs has the partitions", () => plain.owned().length === 2)
        const binding = reader(name, [])
        const app = yield* Bus.start(binding)
        yield* Bus.until("the connector is down", isDown(app), { within: "10 seconds" })
        const step = "set partitionAssignmentStrategy to [eventbus-cooperative-sticky, RoundRobinAssigner]"
        yield* saysSo(app, [
          "INCONSISTENT_GROUP_PROTOCOL",
          `group '${name}' has 1 member of client 'bare', whose assignment protocol is 'RoundRobinAssigner'`,
          "this member lists 'eventbus-cooperative-sticky'",
          step
        ])
        const [finding] = yield* findings(binding)
        assert.strictEqual(finding?.severity, "error")
        assert.include(finding?.message, step)
        // The other client stops, so the connector goes on by itself.
        yield* plain.leave
        yield* Bus.until(
          "the connector is well",
          Effect.map(app.connector.health, ({ status }) => status === "UP")
        )
        assert.deepStrictEqual(yield* findings(binding), [])
      })
  )

  Bus.story(
    bootstrap,
    "CLN-07 ruling 80 a kafkajs leader gives the connector a topic that it does not read: within 10 s log, state and health name the leader, the topic and what to do",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("strange")
        yield* Bus.createTopic(name, 2)
        yield* Bus.createTopic(`${name}-other`, 2)
        const plain = yield* BareClient.join(bootstrap, name, [name, `${name}-other`], () => {})
        yield* Bus.until("kafkajs has the partitions", () => plain.owned().length === 4)
        const listed = ["eventbus-cooperative-sticky", "RoundRobinAssigner"] as const
        const app = yield* Bus.start(reader(name, [], { partitionAssignmentStrategy: listed }))
        yield* Bus.until("the connector is down", isDown(app), { within: "10 seconds" })
        yield* saysSo(app, [
          ...["FOREIGN_ASSIGNMENT", "of client 'bare' assigns", `'${name}-other'`, "group of its own"],
          "Besides this member the group has 1 member of client 'bare'."
        ])
        yield* Bus.until(
          "plan --check names the topic",
          Effect.map(Plan.check(Plan.make(reader(name, [], { partitionAssignmentStrategy: listed }))), (all) =>
            all.some(
              ({ code, subject, severity }) =>
                code === "topic-of-other-members" && subject === `${name}-other` && severity === "error"
            )
          )
        )
      })
  )

  Bus.story(
    bootstrap,
    "C51 CLN-07 a kafkajs service with a retry topic of its own: a binding of both topics joins its group and takes over, nothing is lost, and plan --check counts both kinds of members",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("ownretry")
        const retry = `${name}.retry`
        yield* Bus.createTopic(name, 2)
        yield* Bus.createTopic(retry, 2)
        const old: Array<string> = []
        const plain = yield* BareClient.join(bootstrap, name, [name, retry], ({ value }) => void old.push(value))
        yield* Bus.until("kafkajs has the partitions", () => plain.owned().length === 4)
        const handled: Array<string> = []
        const listed = ["eventbus-cooperative-sticky", "RoundRobinAssigner"] as const
        const binding = Binding.make(name, {
          ...{ topic: [name, retry], groupId: name, value: Serde.string, retry: RetryPolicy.blocking() },
          ...{ sessionTimeout: "6 seconds", heartbeatInterval: "500 millis", partitionAssignmentStrategy: listed },
          handler: ({ value }) => Effect.sync(() => void handled.push(value))
        })
        const app = yield* Bus.start(binding)
        const owned = () => app.of("PartitionAssigned").length - app.of("PartitionReleased").length
        yield* Bus.until("the partitions of both topics are shared", () => owned() === 2 && plain.owned().length === 2)
        const all = yield* Plan.check(Plan.make(binding))
        assert.notInclude(
          all.map(({ code }) => code),
          "topic-of-other-members"
        )
        assert.include(
          all.find(({ code }) => code === "group-protocol")?.message,
          "has 1 member of client 'bare', 1 member of client"
        )
        assert.include(all.find(({ code }) => code === "group-protocol")?.message, "1 of 2 members is of the connector")
        yield* Bus.publish(Bus.numbered(name, 2, 100))
        yield* Bus.publish(Bus.numbered(retry, 2, 100, 100))
        yield* Bus.until("all is read", () => handled.length + old.length >= 200)
        yield* plain.leave
        yield* Bus.until("the connector has all partitions", () => owned() === 4)
        yield* Bus.publish(Bus.numbered(retry, 2, 100, 200))
        yield* Bus.until("the rest is read", () => handled.length + old.length >= 300)
        assert.deepStrictEqual(
          [...new Set([...handled, ...old])].map(Number).sort((a, b) => a - b),
          Array.from({ length: 300 }, (_, n) => n)
        )
      })
  )
})
