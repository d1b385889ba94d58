/**
 * Refusals of a cluster have typed errors, are logged once however often they repeat, harm no neighbour, and end when the cluster is repaired.
 */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import type { KafkaJs } from "@eventbus/kafkajs"
import { Effect, Redacted, Schema } from "effect"
import { incompressible } from "../scenarios/bus.ts"
import { grant } from "./acls.ts"
import * as Bus from "./bus.ts"

class Refused extends Schema.TaggedError<Refused>()("Refused", {}) {}

const fine = (text: string) => text !== "bad" && !text.startsWith("bad ")

/** A binding of this name, on a topic and in a group of the same name; it knows what it handled. */
const binding = (name: string) => {
  const handled: Array<string> = []
  const made = Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.string,
    // Records behind a copy that is refused are handled meanwhile.
    ackMode: "MANUAL",
    retry: RetryPolicy.none,
    handler: ({ value }) => (fine(value) ? Effect.sync(() => handled.push(value)) : Effect.fail(new Refused({}))),
    onError: { Refused: Route.retry }
  })
  return { name, made, handled }
}

/** One connector with a binding that works: whatever happens to others, it goes on. */
const withNeighbour = Effect.gen(function* () {
  const neighbour = binding(Bus.fresh("neighbour"))
  yield* Bus.createTopic(neighbour.name)
  const app = yield* Bus.start(neighbour.made)
  let published = 0
  const neighbourWorks = Effect.gen(function* () {
    yield* Bus.publish(Bus.numbered(neighbour.name, 1, 1, published++))
    yield* Bus.until("the neighbour works", () => neighbour.handled.length === published)
  })
  yield* neighbourWorks
  return { app, neighbourWorks }
})

/** The lines of at least level `Warn` that name the topic: the start's own line names it at level `Info`. */
const problemsNaming = (log: Bus.App["log"], topic: string) =>
  log.filter(({ level, message }) => level !== "Info" && message.includes(topic))

const publish = (topic: string, value: string) => Bus.publish([{ topic, key: null, value: Bus.bytes(value) }])

/** The binding cannot run, has tried three times, and said so once. Answers why. */
const crashes = Effect.fnUntraced(function* (app: Bus.App, name: string) {
  const seen = () => app.of("SessionCrashed").filter((event) => event.binding === name)
  yield* Bus.until(`${name} tries again and again`, () => seen().length >= 3, { otherwise: () => app.log })
  const error = seen()[0]!.error
  // Health has a line of its own for a cluster that cannot be reached, some seconds later.
  const told = app.log.filter(({ message }) => message.includes(error.message) && !message.startsWith("Cluster "))
  assert.strictEqual(told.length, 1, error.message)
  const shown = (yield* app.connector.listBindings).find((each) => each.name === name)
  assert.notDeepEqual(
    shown?.consumers.map(({ status }) => status),
    ["running"]
  )
  assert.strictEqual(shown?.state, "RUNNING")
  return error
})

const handles = ({ name, handled }: ReturnType<typeof binding>, app: Bus.App) =>
  Bus.until(`${name} handles its record`, () => handled.includes("hello"), { otherwise: () => app.log })

KafkaSuite.shared("a cluster that refuses", (bootstrap) => {
  Bus.story(
    bootstrap,
    "LIF-18 a topic that does not exist is named once, and read as soon as somebody creates it",
    () =>
      Effect.gen(function* () {
        const { app, neighbourWorks } = yield* withNeighbour
        const late = binding(Bus.fresh("late"))
        yield* app.register(late.made)
        yield* Bus.until("it is reported", () => app.of("TopicUnavailable").length > 0)
        assert.deepStrictEqual(
          app.of("TopicUnavailable").map(({ topic, error }) => [topic, error._tag]),
          [[late.name, "UnknownTopic"]]
        )
        const named = () => app.log.filter(({ message }) => message.includes(`'${late.name}' does not exist`))
        yield* Bus.until("health's line is in the log", () => named().length > 0)
        yield* neighbourWorks
        yield* Bus.createTopic(late.name)
        yield* publish(late.name, "hello")
        yield* handles(late, app)
        assert.strictEqual(named().length, 1)
      })
  )

  Bus.story(
    bootstrap,
    "OFF-07 a dead letter that its topic is too small for keeps its record, said once, until the topic takes it",
    () =>
      Effect.gen(function* () {
        const { app, neighbourWorks } = yield* withNeighbour
        const large = binding(Bus.fresh("large"))
        const letters = `${large.name}.DLT`
        // No codec makes it small enough.
        const value = `bad ${Buffer.from(incompressible(4_000)).toString("base64")}`
        yield* Bus.createTopic(large.name, 2)
        yield* Bus.createTopic(letters, 2, { "max.message.bytes": "2000" })
        yield* app.register(large.made)
        yield* Bus.publish([
          { topic: large.name, partition: 0, key: null, value: Bus.bytes(value) },
          { topic: large.name, partition: 0, key: null, value: Bus.bytes("behind") },
          { topic: large.name, partition: 1, key: null, value: Bus.bytes("beside") }
        ])
        yield* Bus.until("it is refused repeatedly", () => app.of("PublishFailed").length >= 3)
        yield* Bus.until("the partition beside and the record behind go on", () => large.handled.length === 2)
        yield* neighbourWorks
        const refusals = app.of("PublishFailed").map(({ error }) => error)
        assert.deepStrictEqual(new Set(refusals.map(({ _tag }) => _tag)), new Set(["RecordTooLarge"]))
        assert.isTrue(refusals.every(({ message }) => message.includes("takes, which is 2000.")))
        assert.strictEqual(problemsNaming(app.log, letters).length, 1)
        assert.sameMembers(large.handled, ["beside", "behind"])
        assert.isAtMost(Number((yield* Bus.committed(large.name, large.name)).get(0) ?? 0n), 0)

        yield* Bus.withAdmin((admin) => admin.alterTopicConfig(letters, new Map([["max.message.bytes", "1000000"]])))
        yield* Bus.lagIsZero(large.name, large.name)
        assert.strictEqual(large.handled.length, 2)
        assert.deepStrictEqual(
          (yield* Bus.readAll(letters)).map((record) => Bus.text(record.value)),
          [value]
        )
      })
  )

  Bus.story(
    bootstrap,
    "an illegal topic name, or one whose dead letter topic would be illegal, is refused at registration",
    () =>
      Effect.gen(function* () {
        const { app, neighbourWorks } = yield* withNeighbour
        for (const name of ["bad topic/name", "a".repeat(248)]) {
          const error = yield* Effect.flip(app.connector.register(binding(name).made))
          assert.strictEqual(error._tag, "ConfigurationValidation")
        }
        assert.strictEqual((yield* app.connector.listBindings).length, 1)
        yield* neighbourWorks
      })
  )
})

KafkaSuite.own("a secured cluster that refuses", { security: "sasl_ssl", acls: true }, (it) => {
  const as = (cluster: RealKafka.Cluster, user: { readonly username: string; readonly password: string }) =>
    ({
      brokers: cluster.bootstrap,
      ...(cluster.ca === undefined ? {} : { ssl: { ca: cluster.ca } }),
      sasl: { mechanism: "plain", username: user.username, password: Redacted.make(user.password) }
    }) satisfies KafkaJs.Options

  const asAdmin = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(RealKafka.RealKafka, (cluster) => Bus.on(as(cluster, cluster.users.admin), effect))

  const asApp = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(RealKafka.RealKafka, (cluster) => Bus.on(as(cluster, cluster.users.app), effect))

  it.effect(
    "SEC-01 LIF-17 a wrong password is AuthenticationFailed, is not in the log, and harms no other binding",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const { app, neighbourWorks } = yield* withNeighbour
        const wrong = binding(Bus.fresh("password"))
        const { username } = cluster.users.app
        yield* Bus.on(as(cluster, { username, password: "not-the-password" }), app.register(wrong.made))
        assert.strictEqual((yield* crashes(app, wrong.name))._tag, "AuthenticationFailed")
        assert.notInclude(JSON.stringify(app.log), "not-the-password")
        yield* neighbourWorks
      }).pipe(asAdmin),
    120_000
  )

  it.effect(
    "an unknown certificate authority is TlsFailed, and harms no other binding",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const { app, neighbourWorks } = yield* withNeighbour
        const distrusting = binding(Bus.fresh("authority"))
        yield* Bus.on({ ...as(cluster, cluster.users.app), ssl: true }, app.register(distrusting.made))
        assert.strictEqual((yield* crashes(app, distrusting.name))._tag, "TlsFailed")
        yield* neighbourWorks
      }).pipe(asAdmin),
    120_000
  )

  for (const denied of ["TOPIC", "GROUP"] as const) {
    const granted = denied === "TOPIC" ? "GROUP" : "TOPIC"
    it.effect(
      `a ${denied.toLowerCase()} without a read ACL is AuthorizationFailed and is named; granting the ACL heals it`,
      () =>
        Effect.gen(function* () {
          const cluster = yield* RealKafka.RealKafka
          const { app, neighbourWorks } = yield* withNeighbour
          const { name, made, handled } = binding(Bus.fresh(`denied-${denied.toLowerCase()}`))
          yield* Bus.createTopic(name)
          yield* publish(name, "hello")
          yield* grant(cluster, { resource: granted, name, operation: "READ" })
          yield* asApp(app.register(made))
          const error = yield* crashes(app, name)
          assert.strictEqual(error._tag, "AuthorizationFailed")
          assert.include(error.message, `${denied.toLowerCase()} '${name}'`)
          yield* neighbourWorks
          yield* grant(cluster, { resource: denied, name, operation: "READ" })
          yield* handles({ name, made, handled }, app)
        }).pipe(asAdmin),
      120_000
    )
  }

  it.effect(
    "OFF-07 a record for a dead letter topic without a write ACL waits, is logged once, and goes on when the ACL is granted",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const { app, neighbourWorks } = yield* withNeighbour
        const { name, made, handled } = binding(Bus.fresh("denied-letters"))
        const letters = `${name}.DLT`
        yield* Bus.createTopic(name)
        yield* Bus.createTopic(letters)
        yield* grant(
          cluster,
          { resource: "TOPIC", name, operation: "READ" },
          { resource: "GROUP", name, operation: "READ" }
        )
        yield* asApp(app.register(made))
        yield* publish(name, "bad")
        yield* publish(name, "hello")
        const refusals = () => app.of("PublishFailed")
        yield* Bus.until("it is refused repeatedly", () => refusals().length >= 3, { otherwise: () => app.log })
        assert.deepInclude(refusals()[0]?.error, { _tag: "AuthorizationFailed", resource: "topic", name: letters })
        // The start reports each missing ACL once, and a denied operation is reported once.
        assert.deepStrictEqual(
          problemsNaming(app.log, letters).map(({ level }) => level),
          ["Warn", "Error"]
        )
        // Records behind it are handled, and nothing is committed.
        assert.deepStrictEqual(handled, ["hello"])
        assert.isAtMost(Number((yield* Bus.committed(name, name)).get(0) ?? 0n), 0)
        yield* neighbourWorks
        yield* grant(cluster, { resource: "TOPIC", name: letters, operation: "WRITE" })
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual(
          (yield* Bus.readAll(letters)).map((record) => Bus.text(record.value)),
          ["bad"]
        )
      }).pipe(asAdmin),
    120_000
  )

  it.effect(
    "LIF-17 no broker at the start is BrokerUnavailable; when one starts, the binding does",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const early = binding(Bus.fresh("early"))
        yield* Bus.createTopic(early.name)
        yield* publish(early.name, "hello")
        yield* cluster.kill(1)
        const app = yield* Bus.start(early.made)
        assert.strictEqual((yield* crashes(app, early.name))._tag, "BrokerUnavailable")
        yield* cluster.restart(1)
        yield* handles(early, app)
      }).pipe(asAdmin),
    240_000
  )
})
