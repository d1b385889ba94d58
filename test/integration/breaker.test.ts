/** A dependency that is down for longer than the session timeout: records wait where they are, the group keeps its member, and everything goes on by itself. */
import { assert } from "@effect/vitest"
import { Binding, type CircuitBreaker, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect } from "effect"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down") {}

const partitions = 3
const sessionMillis = 2_000
const tierMillis = 500

interface Call {
  readonly value: number
  readonly partition: number
  readonly tier: number
  readonly failed: boolean
}

/** A binding that calls a dependency. */
const dependent = (name: string, circuitBreaker: CircuitBreaker.Options) => {
  const calls: Array<Call> = []
  const dependency = { isDown: false, calls }
  const made = Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.string,
    sessionTimeout: sessionMillis,
    heartbeatInterval: 300,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: tierMillis, concurrency: 16 }] }),
    circuitBreaker: {
      waitDurationInOpenState: 200,
      permittedNumberOfCallsInHalfOpenState: 2,
      probe: Effect.suspend(() => (dependency.isDown ? Effect.fail(new Down()) : Effect.void)),
      ...circuitBreaker
    },
    handler: ({ record: { partition }, value, tier }) =>
      Effect.suspend(() => {
        const failed = dependency.isDown
        dependency.calls.push({ value: Number(value), partition, tier, failed })
        return failed ? Effect.fail(new Down()) : Effect.void
      }),
    onError: { Down: Route.retry }
  })
  const handled = () => dependency.calls.filter(({ failed }) => !failed)
  return { dependency, made, handled }
}

const members = (groupId: string) =>
  Effect.map(
    Bus.withAdmin((admin) => admin.describeGroup(groupId)),
    (group) => group.members.map(({ memberId, assignment }) => [memberId, assignment.length])
  )

const total = (topic: string) =>
  Effect.map(Bus.logEnds(topic), (ends) => Array.from(ends.values()).reduce((sum, end) => sum + end, 0n))

const breakerIs = (app: Bus.App, state: CircuitBreaker.State) =>
  Bus.until(`the breaker is ${state}`, () => app.of("BreakerChanged").at(-1)?.to === state, {
    otherwise: () => app.of("BreakerChanged")
  })

/** The dependency is down for three session timeouts. Nothing is called, published or committed meanwhile, and the group does not change. */
const outage = Effect.fnUntraced(function* (app: Bus.App, name: string, dependency: { readonly calls: Array<Call> }) {
  yield* breakerIs(app, "OPEN")
  assert.strictEqual(yield* app.connector.getState(name), "PAUSED")
  // Calls that were running when it opened have ended.
  yield* Effect.sleep("100 millis")
  const look = Effect.gen(function* () {
    const topics = [name, `${name}.retry-1`]
    const offsets = yield* Effect.forEach(topics, (topic) => Bus.committed(name, topic))
    return [dependency.calls.length, yield* Effect.forEach(topics, total), offsets, yield* members(name)]
  })
  const before = yield* look
  const endsAt = performance.now() + 3 * sessionMillis
  while (performance.now() < endsAt) {
    yield* Effect.sleep("500 millis")
    assert.deepStrictEqual(yield* look, before)
  }
})

const inOrder = (calls: ReadonlyArray<Call>): void => {
  for (const [partition, mine] of Map.groupBy(calls, (call) => call.partition)) {
    const values = mine.map(({ value }) => value)
    assert.deepStrictEqual(
      values,
      values.toSorted((a, b) => a - b),
      `partition ${partition}`
    )
  }
}

KafkaSuite.shared("a circuit breaker", (bootstrap) => {
  Bus.story(
    bootstrap,
    "CB-07 CB-08 CB-09 CB-15 ruling 10 a dependency that is down for three session timeouts: membership is kept, nothing is retried or dead-lettered, all is handled in order",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("outage")
        yield* Bus.createTopic(name, partitions)
        // Opens at once: the record that it opened on stays where it is, too.
        const { dependency, made, handled } = dependent(name, { minimumNumberOfCalls: 1, slidingWindowSize: 1 })
        const app = yield* Bus.start(made)
        yield* Bus.publish(Bus.numbered(name, partitions, 60))
        yield* Bus.until("it works", () => handled().length === 60)
        dependency.isDown = true
        yield* Bus.publish(Bus.numbered(name, partitions, 600, 60))
        yield* outage(app, name, dependency)
        dependency.isDown = false
        yield* breakerIs(app, "CLOSED")
        yield* Bus.lagIsZero(name, name)

        assert.strictEqual(yield* app.connector.getState(name), "RUNNING")
        assert.strictEqual(handled().length, 660)
        inOrder(handled())
        assert.strictEqual(yield* total(`${name}.retry-1`), 0n)
        assert.notInclude(yield* Bus.withAdmin((admin) => admin.listTopics), `${name}.DLT`)
        assert.deepStrictEqual([...app.of("PartitionRevoked"), ...app.of("PartitionLost")], [])
        // One failed call for each partition that was being worked on.
        assert.isAtMost(dependency.calls.filter(({ failed }) => failed).length, partitions)
        assert.strictEqual(app.log.filter(({ message }) => message.includes("breaker is OPEN")).length, 1)
      })
  )

  Bus.story(
    bootstrap,
    "CB-03 CB-08 RTY-19 RTY-24 ruling 27 what waits in a tier when the breaker opens stays there past its time, and is handled when it closes",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("outage-tiers")
        yield* Bus.createTopic(name, partitions)
        const { dependency, made, handled } = dependent(name, {
          ...{ minimumNumberOfCalls: 5, slidingWindowSize: 5, failureRateThreshold: 100 }
        })
        const app = yield* Bus.start(made)
        yield* Bus.publish(Bus.numbered(name, partitions, 60))
        yield* Bus.until("it works", () => handled().length === 60)
        dependency.isDown = true
        yield* Bus.publish(Bus.numbered(name, partitions, 600, 60))
        yield* outage(app, name, dependency)
        // Four fail before the fifth opens it; more may run by then, and stay.
        assert.strictEqual(yield* total(`${name}.retry-1`), 4n)
        dependency.isDown = false
        yield* breakerIs(app, "CLOSED")
        for (const topic of [name, `${name}.retry-1`]) yield* Bus.lagIsZero(name, topic)

        const main = handled().filter(({ tier }) => tier === 0)
        assert.deepStrictEqual([main.length, handled().length - main.length], [656, 4])
        inOrder(main)
        assert.strictEqual(new Set(handled().map(({ value }) => value)).size, 660)
        assert.strictEqual(yield* total(`${name}.retry-1`), 4n)
        assert.notInclude(yield* Bus.withAdmin((admin) => admin.listTopics), `${name}.DLT`)
      })
  )
})
