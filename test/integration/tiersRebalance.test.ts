/** Retry tiers and rebalances: a group of their own that leaves the main topic alone, and members that come and go all the time. */
import { assert } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect, Exit, Queue, Random, Scope } from "effect"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down") {}

const partitions = 6

interface Call {
  readonly value: number
  readonly tier: number
  readonly partition: number
  readonly atMillis: number
}

/** Record `n` passes in the main topic, in tier 1, in tier 2 or never, by the rest of n / 4. */
const member = (name: string, passed: Array<Call>, consumer: "shared" | "separate") =>
  Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.string,
    ackMode: "MANUAL",
    sessionTimeout: "6 seconds",
    heartbeatInterval: "300 millis",
    retry: RetryPolicy.tiered({
      consumer,
      blocking: { maxAttempts: 1 },
      tiers: [300, 600].map((delay) => ({ delay, maxAttempts: 1, concurrency: 16 }))
    }),
    handler: ({ record: { partition }, value, tier }) =>
      Effect.suspend(() => {
        if (tier < Number(value) % 4) return Effect.fail(new Down())
        passed.push({ value: Number(value), tier, partition, atMillis: performance.now() })
        return Effect.void
      }),
    onError: { Down: Route.retry }
  })

/** A member that can leave. */
const joined = Effect.fnUntraced(function* (name: string, passed: Array<Call>, consumer: "shared" | "separate") {
  const scope = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
  const app = yield* Scope.provide(Bus.start(member(name, passed, consumer)), scope)
  return { app, leave: Scope.close(scope, Exit.void) }
})

/** Publishes a few records at a time until the story has ended; answers how many. */
const whileItGoesOn = <E, R>(name: string, story: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    let published = 0
    let goesOn = true
    const load = Effect.gen(function* () {
      while (goesOn) {
        yield* Bus.publish(Bus.numbered(name, partitions, 120, published))
        published += 120
        yield* Effect.sleep("100 millis")
      }
    })
    yield* Effect.all(
      [
        load,
        Effect.ensuring(
          story,
          Effect.sync(() => (goesOn = false))
        )
      ],
      { concurrency: "unbounded" }
    )
    return published
  })

/** Each of the records is where it belongs, once. */
const checkAll = Effect.fnUntraced(function* (name: string, passed: ReadonlyArray<Call>, published: number) {
  const numbers = Array.from({ length: published }, (_, value) => value)
  assert.deepStrictEqual(
    passed.map(({ value }) => value).sort((a, b) => a - b),
    numbers.filter((value) => value % 4 !== 3)
  )
  for (const { value, tier } of passed) assert.strictEqual(tier, value % 4)
  const letters = yield* Bus.readAll(`${name}.DLT`)
  assert.deepStrictEqual(
    letters.map(({ value }) => Number(Bus.text(value))).sort((a, b) => a - b),
    numbers.filter((value) => value % 4 === 3)
  )
})

KafkaSuite.shared("rebalances of retry tiers", (bootstrap) => {
  Bus.story(
    bootstrap,
    "RTY-18 ruling 50 tiers with a consumer of their own: their rebalances never touch the main topic",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("separate")
        const tiers = [`${name}.retry-1`, `${name}.retry-2`]
        yield* Bus.createTopic(name, partitions)
        const passed: Array<Call> = []
        const { app } = yield* joined(name, passed, "separate")
        const assigned = () => app.of("PartitionAssigned").length
        yield* Bus.until("everything is assigned", () => assigned() === 3 * partitions, { otherwise: () => app.log })
        assert.strictEqual((yield* Bus.withAdmin((admin) => admin.describeGroup(`${name}.retry`))).members.length, 1)

        // Somebody else joins the group of the tiers, gives up what it gets, and leaves, three times.
        const guest = Effect.gen(function* () {
          const broker = yield* Broker.Broker
          const session = yield* broker.consumer({ groupId: `${name}.retry`, topics: tiers })
          while ((yield* Queue.take(session.events))._tag !== "Assigned") {}
        }).pipe(Effect.scoped)
        const visits = Effect.gen(function* () {
          for (let visit = 0; visit < 3; visit++) {
            const before = assigned()
            yield* guest
            yield* Bus.until("the tiers are back", () => assigned() > before)
          }
        })
        const published = yield* whileItGoesOn(name, visits)
        for (const topic of tiers) yield* Bus.lagIsZero(`${name}.retry`, topic)
        yield* Bus.lagIsZero(name, name)
        for (const topic of tiers) yield* Bus.lagIsZero(`${name}.retry`, topic)

        yield* checkAll(name, passed, published)
        const revoked = app.of("PartitionRevoked").map(({ topic }) => topic)
        assert.isNotEmpty(revoked)
        assert.notInclude(revoked, name)
        assert.strictEqual(app.of("PartitionAssigned").filter(({ topic }) => topic === name).length, partitions)
        const times = passed.filter(({ tier }) => tier === 0).map(({ atMillis }) => atMillis)
        assert.isBelow(Math.max(...times.slice(1).map((at, index) => at - times[index]!)), 1_500)
      })
  )

  Bus.story(
    bootstrap,
    "REB-12 RTY-24 ruling 17 members with tiers come and go for 20 seconds: each record ends once, where it belongs",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("tier-storm")
        yield* Bus.createTopic(name, partitions)
        const passed: Array<Call> = []
        const stayer = yield* joined(name, passed, "shared")
        const endsAt = performance.now() + 20_000
        let visits = 0
        const comeAndGo = Effect.gen(function* () {
          while (performance.now() < endsAt) {
            const guest = yield* joined(name, passed, "shared")
            yield* Bus.until("the guest gets something", () => guest.app.of("PartitionAssigned").length > 0)
            yield* Effect.sleep(yield* Random.nextIntBetween(100, 1_500))
            yield* guest.leave
            visits++
          }
        })
        const both = Effect.all([comeAndGo, comeAndGo], { concurrency: "unbounded", discard: true })
        const published = yield* whileItGoesOn(name, both)
        for (const topic of [name, `${name}.retry-1`, `${name}.retry-2`]) yield* Bus.lagIsZero(name, topic)
        yield* checkAll(name, passed, published)
        assert.isAtLeast(visits, 6)
        assert.deepStrictEqual(stayer.app.of("PartitionLost"), [])
      })
  )
})
