/** Stopping: what runs is finished and committed, what does not end is left behind in bounded time, and nothing is repeated that was done. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { type Duration, Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

interface Seen {
  readonly started: Array<string>
  readonly handled: Array<string>
}

const binding = (
  name: string,
  { started, handled }: Seen,
  handler: (value: string) => Effect.Effect<void>,
  settings: { readonly shutdownTimeout?: Duration.Input; readonly staticMembership?: boolean } = {}
) =>
  Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.string,
    ...settings,
    retry: RetryPolicy.blocking(),
    handler: ({ value }) =>
      Effect.andThen(
        Effect.suspend(() => {
          started.push(value)
          return handler(value)
        }),
        Effect.sync(() => handled.push(value))
      )
  })

const nothing = (): Seen => ({ started: [], handled: [] })

const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index))

/** How long something took, in milliseconds. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const before = performance.now()
    return Effect.map(effect, () => performance.now() - before)
  })

/** The partitions that the application has now, in order. */
const owned = (app: Bus.App): ReadonlyArray<number> => {
  const partitions = new Set<number>()
  for (const event of app.events) {
    if (event._tag === "PartitionAssigned") partitions.add(event.partition)
    if (event._tag === "PartitionRevoked" || event._tag === "PartitionLost") partitions.delete(event.partition)
  }
  return Array.from(partitions).sort()
}

const groupIsEmpty = (groupId: string) =>
  Bus.until(
    "the group has no member",
    Effect.map(
      Bus.withAdmin((admin) => admin.describeGroup(groupId)),
      ({ members }) => members.length === 0
    )
  )

KafkaSuite.shared("stopping", (bootstrap) => {
  Bus.story(
    bootstrap,
    "LIF-03 LIF-12 LIF-13 running handlers are awaited and committed, no other starts, and a start goes on behind them",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("running")
        yield* Bus.createTopic(name, 3)
        yield* Bus.publish(Bus.numbered(name, 3, 12))
        const seen = nothing()
        const app = yield* Bus.start(binding(name, seen, () => Effect.sleep("700 millis")))
        yield* Bus.until("a handler runs in each partition", () => seen.started.length >= 3)
        yield* app.connector.stop(name)
        const { started, handled } = { started: [...seen.started], handled: [...seen.handled] }
        assert.deepStrictEqual([...handled].sort(), [...started].sort())
        const sum = (offsets: ReadonlyMap<number, bigint>) => Array.from(offsets.values()).reduce((a, b) => a + b, 0n)
        assert.strictEqual(Number(sum(yield* Bus.committed(name, name))), handled.length)
        yield* groupIsEmpty(name)
        yield* app.connector.start(name)
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual([...seen.started].sort(), numbers(12).sort())
      })
  )

  Bus.story(bootstrap, "LIF-10 a handler that stops its own binding is finished and committed, and is the last", () =>
    Effect.gen(function* () {
      const name = Bus.fresh("itself")
      yield* Bus.createTopic(name)
      yield* Bus.publish(Bus.numbered(name, 1, 10))
      const seen = nothing()
      const app = yield* Bus.start()
      yield* app.register(
        binding(name, seen, (value) => (value === "4" ? Effect.orDie(app.connector.stop(name)) : Effect.void))
      )
      yield* Bus.until("it has stopped", () => app.of("SessionClosed").length === 1)
      assert.deepStrictEqual(seen.started, numbers(5))
      assert.deepStrictEqual(seen.handled, numbers(5))
      assert.deepStrictEqual(Array.from(yield* Bus.committed(name, name)), [[0, 5n]])
      yield* groupIsEmpty(name)
    })
  )

  Bus.story(
    bootstrap,
    "LIF-12 a handler that never ends, and cannot be interrupted, holds a stop up no longer than its bounds; its record is delivered again",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("endless")
        yield* Bus.createTopic(name)
        yield* Bus.publish(Bus.numbered(name, 1, 3))
        const seen = nothing()
        const stuck = (value: string) => (value === "1" ? Effect.uninterruptible(Effect.never) : Effect.void)
        const app = yield* Bus.start(binding(name, seen, stuck, { shutdownTimeout: "1 second" }))
        yield* Bus.until("it is stuck", () => seen.started.length === 2)
        assert.isBelow(yield* timed(app.close), 12_000)
        assert.strictEqual(app.log.filter(({ message }) => message.includes("Drain timed out")).length, 1)
        assert.deepStrictEqual(Array.from(yield* Bus.committed(name, name)), [[0, 1n]])
        yield* groupIsEmpty(name)

        const after = nothing()
        yield* Bus.start(binding(name, after, () => Effect.void))
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual(after.handled, ["1", "2"])
      })
  )

  Bus.story(
    bootstrap,
    "REB-08 a static member that restarts gets its partitions back without a rebalance for the others",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("static")
        yield* Bus.createTopic(name, 4)
        const [mine, theirs] = [nothing(), nothing()]
        // Two bindings of one group, since the name of the binding is part of the member's identity.
        const member = (suffix: string, { started, handled }: Seen) =>
          Binding.make(`${name}-${suffix}`, {
            topic: name,
            groupId: name,
            value: Serde.string,
            staticMembership: true,
            retry: RetryPolicy.blocking(),
            handler: ({ value }) =>
              Effect.sync(() => {
                started.push(value)
                handled.push(value)
              })
          })
        const other = yield* Bus.start(member("other", theirs))
        const first = yield* Bus.start(member("restarted", mine))
        // Either may be the first in the group, and own all partitions for a while.
        yield* Bus.until("both have their share", () => [other, first].every((app) => owned(app).length === 2))
        const share = owned(first)
        yield* Bus.publish(Bus.numbered(name, 4, 40))
        yield* Bus.lagIsZero(name, name)
        const before = other.events.filter(({ _tag }) => _tag.startsWith("Partition")).length
        yield* first.close
        yield* Bus.publish(Bus.numbered(name, 4, 40, 40))
        const second = yield* Bus.start(member("restarted", mine))
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual(owned(second), share)
        assert.strictEqual(other.events.filter(({ _tag }) => _tag.startsWith("Partition")).length, before)
        assert.deepStrictEqual([...mine.handled, ...theirs.handled].sort(), numbers(80).sort())
      })
  )

  Bus.story(
    bootstrap,
    "LIF-15 NFR-01 SIGTERM: a process drains, ends with its code in time, and the next one repeats nothing",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("sigterm")
        const journal = yield* Journal.make
        yield* Bus.createTopic(name, 6)
        yield* Bus.publish(Bus.numbered(name, 6, 1_200))
        const launch = Program.run("consumer.ts", {
          brokers: bootstrap,
          journal: journal.path,
          ...{ name, topic: name, groupId: name, handlerMillis: 10, blockMillis: 0 },
          settings: { ackMode: "MANUAL", processingOrder: "unordered" }
        })
        for (let round = 0; round < 2; round++) {
          const program = yield* launch
          const some = journal.done().length + 150
          yield* Bus.until("it works", () => journal.done().length > some, { otherwise: program.output })
          yield* program.signal("SIGTERM")
          assert.deepStrictEqual(yield* Effect.timeout(program.exit, "15 seconds"), { code: 130, signal: null })
          assert.strictEqual(journal.started().length, journal.done().length)
          yield* groupIsEmpty(name)
        }
        yield* launch
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual(Journal.repeated(journal.started()), [])
        assert.strictEqual(journal.done().length, 1_200)
      })
  )
})

KafkaSuite.own("stopping without a broker", {}, (it) => {
  it.effect(
    "LIF-12 a stop with the broker down is bounded; records that could not be committed are delivered again",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const story = Effect.gen(function* () {
          const name = Bus.fresh("down")
          yield* Bus.createTopic(name)
          yield* Bus.publish(Bus.numbered(name, 1, 3))
          const seen = nothing()
          const app = yield* Bus.start(
            binding(name, seen, (value) =>
              value === "1" ? Effect.andThen(cluster.kill(1), Effect.sleep("300 millis")) : Effect.void
            )
          )
          yield* Bus.until("the broker is gone, and the record is handled", () => seen.handled.length >= 2)
          assert.isBelow(yield* timed(app.close), 20_000)
          assert.deepStrictEqual(seen.handled, ["0", "1"])
          // Nothing was being handled: a commit that cannot be sent is no handler that does not end.
          assert.deepStrictEqual(app.of("DrainTimedOut"), [])
          yield* cluster.restart(1)
          const after = nothing()
          yield* Bus.start(binding(name, after, () => Effect.void))
          yield* Bus.lagIsZero(name, name, "60 seconds")
          assert.deepStrictEqual(after.handled, ["1", "2"])
        })
        yield* Bus.on({ brokers: cluster.bootstrap }, story)
      }),
    240_000
  )
})
