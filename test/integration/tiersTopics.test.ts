/** The topics of retry tiers on a real Kafka: how they are made, and what happens when somebody takes one away. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect } from "effect"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down") {}

const dayMillis = 86_400_000

/** A binding with two tiers of one delivery; its handler fails on values that begin with "bad", as often as `fails` says. */
const binding = (name: string, delays: readonly [number, number], fails: (value: string, tier: number) => boolean) => {
  const handled: Array<string> = []
  const made = Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.string,
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: delays.map((delay) => ({ delay, maxAttempts: 1, concurrency: 16 }))
    }),
    handler: ({ value, tier }) =>
      fails(value, tier) ? Effect.fail(new Down()) : Effect.sync(() => handled.push(`${value} ${tier}`)),
    onError: { Down: Route.retry }
  })
  return { made, handled }
}

const isRouted = ({ settlement }: Bus.EventOf<"Settled">): boolean => settlement === "Routed"

const publish = (topic: string, ...values: ReadonlyArray<string>) =>
  Bus.publish(values.map((value) => ({ topic, key: null, value: Bus.bytes(value) })))

KafkaSuite.shared("topics of retry tiers", (bootstrap) => {
  for (const [told, config, days] of [
    ["a week", {}, 7],
    ["as long as its source, where that is longer", { "retention.ms": String(9 * dayMillis) }, 9]
  ] as const) {
    Bus.story(
      bootstrap,
      `RTY-05 ruling 23 topics that are made have the source's partitions and replication; a retry topic keeps for ${told}, a dead letter topic for ever`,
      () =>
        Effect.gen(function* () {
          const name = Bus.fresh("made")
          yield* Bus.createTopic(name, 5, { "max.message.bytes": "100000", "cleanup.policy": "compact", ...config })
          const app = yield* Bus.start(binding(name, [100, 200], () => true).made)
          yield* Bus.publish([{ topic: name, key: Bus.bytes("k"), value: Bus.bytes("bad") }])
          yield* Bus.until("it is dead-lettered", () =>
            app.of("Settled").some(({ settlement }) => settlement === "DeadLettered")
          )
          const source = yield* Bus.withAdmin((admin) => admin.describeTopic(name))
          for (const [topic, retentionMillis] of [
            [`${name}.retry-1`, days * dayMillis + 200],
            [`${name}.retry-2`, days * dayMillis + 400],
            [`${name}.DLT`, -1]
          ] as const) {
            assert.deepStrictEqual(yield* Bus.withAdmin((admin) => admin.describeTopic(topic)), { ...source, topic })
            const made = yield* Bus.withAdmin((admin) => admin.topicConfig(topic))
            assert.strictEqual(made.get("cleanup.policy"), "delete")
            assert.strictEqual(made.get("retention.ms"), String(retentionMillis), topic)
            assert.isAbove(Number(made.get("max.message.bytes")), 100_000)
          }
        })
    )
  }

  Bus.story(
    bootstrap,
    "RTY-23 a retry topic that is deleted while it is in use takes with it what waits there, and nothing else; it is made again and works on",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("deleted")
        yield* Bus.createTopic(name, 3)
        const { made, handled } = binding(name, [400, 60_000], (value, tier) => value.startsWith("bad") && tier < 1)
        const app = yield* Bus.start(made)
        const bad = (from: number) => Array.from({ length: 30 }, (_, index) => `bad-${from + index}`)
        const passed = (from: number) => () => bad(from).every((value) => handled.includes(`${value} 1`))
        yield* publish(name, ...bad(0))
        yield* Bus.until("the tier works", passed(0))
        yield* Bus.lagIsZero(name, `${name}.retry-1`)
        yield* publish(name, ...bad(1_000))
        yield* Bus.until("more wait there", () => app.of("Settled").filter(isRouted).length === 60)
        yield* Bus.withAdmin((admin) => admin.deleteTopics([`${name}.retry-1`]))

        yield* publish(name, ...bad(100), "good")
        yield* Bus.until("what fails now passes in the new topic", passed(100), {
          otherwise: () => [handled, app.log]
        })
        yield* publish(name, ...bad(200))
        yield* Bus.until("and so do later ones", passed(200), { otherwise: () => [handled, app.log] })
        for (const topic of [name, `${name}.retry-1`]) yield* Bus.lagIsZero(name, topic)
        // Of those that waited, some may have been fetched already.
        const others = handled.filter((each) => !/^bad-\d{4}/.test(each))
        assert.sameMembers(others, ["good 0", ...[0, 100, 200].flatMap(bad).map((value) => `${value} 1`)])
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
        assert.strictEqual((yield* Bus.withAdmin((admin) => admin.describeTopic(`${name}.retry-1`))).partitions, 3)
      })
  )
})
