/**
 * Retry and dead letter topics that may not be written: nothing is committed past the record, its neighbours go on, and a grant heals it. And the ACLs that the commands on
 * dead letters need.
 */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde, Trail } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import type { KafkaJs } from "@eventbus/kafkajs"
import { Data, Effect, Redacted } from "effect"
import { type Acl, grant } from "./acls.ts"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down") {}

const settings = (name: string) => ({
  ...{ topic: name, groupId: name, value: Serde.string },
  // Records behind a copy that is refused are handled meanwhile.
  ackMode: "MANUAL" as const,
  retry: RetryPolicy.tiered({
    blocking: { maxAttempts: 1 },
    tiers: [{ delay: 200, maxAttempts: 1, concurrency: 16 }]
  })
})

/** A binding with one tier; "bad" fails always, "once" on the main topic only. */
const binding = (name: string) => {
  const handled: Array<string> = []
  const made = Binding.make(name, {
    ...settings(name),
    handler: ({ record: { partition }, value, tier }) =>
      value.startsWith("bad") || (value.startsWith("once") && tier === 0)
        ? Effect.fail(new Down())
        : Effect.sync(() => handled.push(`${value} ${tier}/${partition}`)),
    onError: { Down: Route.retry }
  })
  return { made, handled }
}

const isDead = ({ settlement }: Bus.EventOf<"Settled">) => settlement === "DeadLettered"

KafkaSuite.own("a cluster that grants little", { security: "sasl_ssl", acls: true }, (it) => {
  const as = <A, E, R>(who: "admin" | "app", effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(RealKafka.RealKafka, ({ bootstrap, ca, users }) => {
      const options: KafkaJs.Options = {
        brokers: bootstrap,
        ...(ca === undefined ? {} : { ssl: { ca } }),
        sasl: {
          mechanism: "plain",
          username: users[who].username,
          password: Redacted.make(users[who].password)
        }
      }
      return Bus.on(options, effect)
    })

  /** Topics, and a user who may do everything with them but what is denied. */
  const denied = Effect.fnUntraced(function* (name: string, denies: (acl: Acl) => boolean) {
    const cluster = yield* RealKafka.RealKafka
    const acls: ReadonlyArray<Acl> = [
      { resource: "GROUP", name, operation: "READ" },
      { resource: "TOPIC", name, operation: "READ" },
      { resource: "TOPIC", name: `${name}.retry-1`, operation: "READ" },
      { resource: "TOPIC", name: `${name}.retry-1`, operation: "WRITE" },
      { resource: "TOPIC", name: `${name}.DLT`, operation: "WRITE" }
    ]
    yield* grant(cluster, ...acls.filter((acl) => !denies(acl)))
    const { made, handled } = binding(name)
    const app = yield* as("app", Bus.start(made))
    return { app, handled, heal: grant(cluster, ...acls.filter(denies)) }
  })

  /** To partitions 0 and 1, in turn. */
  const publish = (topic: string, ...values: ReadonlyArray<string>) =>
    Bus.publish(values.map((value, index) => ({ topic, partition: index % 2, key: null, value: Bus.bytes(value) })))

  const at = (topic: string, group: string, partition: number) =>
    Effect.map(Bus.committed(group, topic), (offsets) => Math.max(0, Number(offsets.get(partition) ?? 0n)))

  /** Refused again and again, by type, and said once. */
  const refused = Effect.fnUntraced(function* (app: Bus.App, topic: string) {
    yield* Bus.until("it is refused repeatedly", () => app.of("PublishFailed").some(({ attempt }) => attempt >= 3), {
      otherwise: () => app.log
    })
    for (const { error, topic: target } of app.of("PublishFailed")) {
      assert.deepInclude(error, { _tag: "AuthorizationFailed", resource: "topic", name: topic })
      assert.strictEqual(target, topic)
    }
    assert.strictEqual(app.log.filter(({ message }) => message.includes(`'${topic}'; retrying`)).length, 1)
  })

  it.effect(
    "RTY-23 DLT-02 records for a retry topic without a write ACL wait, the other partition goes on, and granting the ACL heals it",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("denied-retry")
        for (const topic of [name, `${name}.retry-1`, `${name}.DLT`]) yield* Bus.createTopic(topic, 2)
        const isDenied = ({ name: topic, operation }: Acl) => topic === `${name}.retry-1` && operation === "WRITE"
        const { app, handled, heal } = yield* denied(name, isDenied)
        yield* publish(name, "first", "first", "once-a", "good", "once-b", "good", "behind", "good")
        yield* Bus.until("the missing ACL is reported", () => app.of("AclsMissing").length > 0)
        assert.deepStrictEqual(app.of("AclsMissing")[0]?.acls, [
          { resource: "topic", name: `${name}.retry-1`, operation: "Write" }
        ])
        yield* refused(app, `${name}.retry-1`)
        yield* Bus.until(
          "the other partition is through",
          Effect.map(at(name, name, 1), (offset) => offset === 4)
        )
        assert.strictEqual(yield* at(name, name, 0), 1)
        assert.sameMembers(handled, [
          ...["first 0/0", "first 0/1", "behind 0/0"],
          ...["good 0/1", "good 0/1", "good 0/1"]
        ])
        yield* heal
        for (const topic of [name, `${name}.retry-1`]) yield* Bus.lagIsZero(name, topic)
        assert.sameMembers(handled.slice(6), ["once-a 1/0", "once-b 1/0"])
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      }).pipe((story) => as("admin", story)),
    120_000
  )

  it.effect(
    "RTY-23 DLT-02 records for a dead letter topic without a write ACL wait in their last tier, the main topic goes on, and granting the ACL heals it",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("denied-letters")
        for (const topic of [name, `${name}.retry-1`, `${name}.DLT`]) yield* Bus.createTopic(topic, 2)
        const { app, handled, heal } = yield* denied(name, ({ name: topic }) => topic === `${name}.DLT`)
        yield* publish(name, "once-a", "once-b", "bad-a", "good", "bad-b", "good")
        yield* refused(app, `${name}.DLT`)
        yield* Bus.lagIsZero(name, name)
        yield* Bus.until(
          "the other partition of the tier is through",
          Effect.map(at(`${name}.retry-1`, name, 1), (offset) => offset === 1)
        )
        assert.isAtMost(yield* at(`${name}.retry-1`, name, 0), 1)
        assert.sameMembers(handled, ["good 0/1", "good 0/1", "once-a 1/0", "once-b 1/1"])
        yield* heal
        yield* Bus.lagIsZero(name, `${name}.retry-1`)
        const letters = yield* Bus.readAll(`${name}.DLT`)
        assert.sameMembers(
          letters.map(({ value }) => Bus.text(value)),
          ["bad-a", "bad-b"]
        )
      }).pipe((story) => as("admin", story)),
    120_000
  )

  it.effect(
    "RTY-23 records for topics that are missing and may not be made wait, and go on when somebody else makes the topics",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("denied-making")
        yield* Bus.createTopic(name, 2)
        const { app, handled } = yield* denied(name, () => false)
        yield* publish(name, "once-a", "good", "bad-a", "good")
        yield* Bus.until("it is refused repeatedly", () => app.of("PublishFailed").some(({ attempt }) => attempt >= 3))
        assert.strictEqual(yield* at(name, name, 0), 0)
        yield* Bus.until(
          "the other partition is through",
          Effect.map(at(name, name, 1), (offset) => offset === 2)
        )
        for (const topic of [`${name}.retry-1`, `${name}.DLT`]) {
          assert.isAtMost(app.log.filter(({ message }) => message.includes(`'${topic}'; retrying`)).length, 1)
          yield* Bus.createTopic(topic, 1)
        }
        for (const topic of [name, `${name}.retry-1`]) yield* Bus.lagIsZero(name, topic)
        assert.sameMembers(handled, ["good 0/1", "good 0/1", "once-a 1/0"])
        assert.strictEqual((yield* Bus.readAll(`${name}.DLT`)).length, 1)
      }).pipe((story) => as("admin", story)),
    120_000
  )

  it.effect(
    "OPS-01 DLT-30 listing and counting dead letters, and a trail, need no right to join a group",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("denied-groups")
        for (const topic of [name, `${name}.retry-1`, `${name}.DLT`]) yield* Bus.createTopic(topic, 2)
        const app = yield* Bus.start(binding(name).made)
        yield* publish(name, "bad-a", "bad-b")
        yield* Bus.until("both are dead letters", () => app.of("Settled").filter(isDead).length === 2)
        yield* app.close
        yield* grant(
          yield* RealKafka.RealKafka,
          { resource: "TOPIC", name, operation: "READ" },
          { resource: "TOPIC", name: `${name}.retry-1`, operation: "READ" },
          { resource: "TOPIC", name: `${name}.DLT`, operation: "READ" },
          { resource: "TOPIC", name: `${name}.DLT.replays`, operation: "READ" },
          { resource: "GROUP", name, operation: "DESCRIBE" },
          { resource: "GROUP", name: `${name}.retry`, operation: "DESCRIBE" },
          { resource: "GROUP", name: `${name}.dlt`, operation: "DESCRIBE" }
        )
        const looking = Effect.gen(function* () {
          const { connector } = yield* Bus.start(
            Binding.make(name, { ...settings(name), autoStartup: false, handler: () => Effect.void })
          )
          const letters = yield* connector.deadLetters(name)
          const { count } = yield* letters.stats
          const listed = yield* Effect.forEach([0, 1], (partition) => letters.list({ partition, count: 10 }))
          const discarded = yield* letters.discarded
          const trail = yield* Trail.trail({ topic: name, groupId: name }, { partition: 0, offset: 0n })
          return { count, states: listed.flat().map(({ state }) => state), discarded, hops: trail.length }
        })
        const seen = yield* as("app", looking)
        assert.deepStrictEqual(seen, { count: 2, states: ["waiting", "waiting"], discarded: [], hops: 3 })
      }).pipe((story) => as("admin", story)),
    120_000
  )

  it.effect(
    "OPS-10 DLT-23 a replay needs no right to the first version's transactional id",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("denied-ids")
        for (const topic of [name, `${name}.DLT`]) yield* Bus.createTopic(topic, 2)
        yield* publish(`${name}.DLT`, "bad-a", "bad-b")
        yield* grant(
          yield* RealKafka.RealKafka,
          { resource: "TOPIC", name, operation: "WRITE" },
          { resource: "TOPIC", name: `${name}.DLT`, operation: "READ" },
          { resource: "TOPIC", name: `${name}.DLT.replays`, operation: "READ" },
          { resource: "TOPIC", name: `${name}.DLT.replays`, operation: "WRITE" },
          { resource: "TOPIC", name: `${name}.DLT.replays`, operation: "CREATE" },
          { resource: "GROUP", name: `${name}.dlt`, operation: "READ" },
          { resource: "TRANSACTIONAL_ID", name: `${name}/${name}.DLT/replay`, operation: "WRITE" }
        )
        const replaying = Effect.gen(function* () {
          const { connector } = yield* Bus.start(
            Binding.make(name, { ...settings(name), autoStartup: false, handler: () => Effect.void })
          )
          return yield* (yield* connector.deadLetters(name)).replay(10)
        })
        assert.strictEqual((yield* as("app", replaying)).replayed, 2)
        assert.strictEqual((yield* Bus.readAll(name)).length, 2)
      }).pipe((story) => as("admin", story)),
    120_000
  )
})
