/** Members that join and leave all the time during load: nothing is lost, nothing is handled twice, and partitions that stay go on. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Exit, Random, Scope } from "effect"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

interface Done extends Journal.Handled {
  readonly atMillis: number
}

/** One member in this process. */
const member = (name: string, handled: Array<Done>) =>
  Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.string,
    ackMode: "MANUAL",
    ...Transport.membership({ sessionTimeout: "6 seconds", heartbeatInterval: "500 millis" }),
    retry: RetryPolicy.blocking(),
    handler: ({ record: { partition, offset }, value }) =>
      Effect.andThen(
        Effect.sleep("1 millis"),
        Effect.sync(() =>
          handled.push({ _tag: "Done", partition, offset: Number(offset), value, atMillis: performance.now() })
        )
      )
  })

/** A member that can be started and stopped on its own. */
const joined = Effect.fnUntraced(function* (name: string, handled: Array<Done>) {
  const scope = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
  const app = yield* Scope.provide(Bus.start(member(name, handled)), scope)
  return { app, leave: Scope.close(scope, Exit.void) }
})

const owned = ({ of }: Bus.App): number => of("PartitionAssigned").length - of("PartitionReleased").length

KafkaSuite.shared("a rebalance storm", (bootstrap) => {
  Bus.story(
    bootstrap,
    "REB-11 REB-12 members and processes come and go for half a minute: nothing lost, nothing handled twice",
    () =>
      Effect.gen(function* () {
        const partitions = 12
        const name = Bus.fresh("storm")
        const journal = yield* Journal.make
        yield* Bus.createTopic(name, partitions)
        const handled: Array<Done> = []
        const stayer = yield* joined(name, handled)
        const mine: Array<Done> = []
        const launch = Program.run("consumer.ts", {
          brokers: bootstrap,
          journal: journal.path,
          ...{ name, topic: name, groupId: name, handlerMillis: 1, blockMillis: 0 },
          settings: { ackMode: "MANUAL", sessionTimeout: 6_000, heartbeatInterval: 500 }
        })

        let published = 0
        const endsAt = performance.now() + 30_000
        const load = Effect.gen(function* () {
          while (performance.now() < endsAt) {
            yield* Bus.publish(Bus.numbered(name, partitions, 240, published))
            published += 240
            yield* Effect.sleep("200 millis")
          }
        })
        let visits = 0
        const comeAndGo = Effect.gen(function* () {
          while (performance.now() < endsAt) {
            const guest = yield* joined(name, mine)
            yield* Bus.until("the guest works", () => owned(guest.app) > 0)
            yield* Effect.sleep(yield* Random.nextIntBetween(200, 2_000))
            yield* guest.leave
            visits++
          }
        })
        const comeAndGoAsProcess = Effect.gen(function* () {
          while (performance.now() < endsAt) {
            const guest = yield* launch
            const before = journal.entries().length
            yield* Bus.until("the process works", () => journal.entries().slice(before).length > 0, {
              otherwise: guest.output
            })
            yield* Effect.sleep(yield* Random.nextIntBetween(200, 2_000))
            yield* guest.signal("SIGTERM")
            assert.deepStrictEqual(yield* guest.exit, { code: 130, signal: null })
            visits++
          }
        })
        yield* Effect.all([load, comeAndGo, comeAndGoAsProcess], { concurrency: "unbounded" })
        yield* Bus.lagIsZero(name, name)

        const all = [...handled, ...mine, ...journal.done()]
        assert.deepStrictEqual(Journal.repeated(all), [])
        assert.strictEqual(all.length, published)
        assert.deepStrictEqual(stayer.app.of("PartitionLost"), [])
        assert.isAtLeast(visits, 6)
      }),
    180_000
  )

  Bus.story(
    bootstrap,
    "REB-11 BND-13 25 partitions over 3 members: evenly spread, and one that comes and goes holds up no partition that stays",
    () =>
      Effect.gen(function* () {
        const partitions = 25
        const name = Bus.fresh("uneven")
        yield* Bus.createTopic(name, partitions)
        const handled: Array<Done> = []
        const first = yield* joined(name, handled)
        const second = yield* joined(name, handled)
        let published = 0
        let loading = true
        const load = Effect.gen(function* () {
          while (loading) {
            yield* Bus.publish(Bus.numbered(name, partitions, partitions * 4, published))
            published += partitions * 4
            yield* Effect.sleep("100 millis")
          }
        })
        const story = Effect.gen(function* () {
          const spread = (...shares: ReadonlyArray<number>) => {
            const found = () => [first, second, ...guests].map(({ app }) => owned(app)).sort()
            return Bus.until(`shares are ${shares}`, () => found().join() === shares.join(), { otherwise: found })
          }
          const guests: Array<typeof first> = []
          yield* spread(12, 13)
          for (let round = 0; round < 3; round++) {
            const guest = yield* joined(name, handled)
            guests.push(guest)
            yield* spread(8, 8, 9)
            const kept = handled.length
            yield* Bus.until("all work on", () => handled.length > kept + partitions)
            yield* guest.leave
            guests.pop()
            yield* spread(12, 13)
          }
          loading = false
        })
        yield* Effect.all([load, story], { concurrency: "unbounded" })
        yield* Bus.lagIsZero(name, name)
        assert.deepStrictEqual(Journal.repeated(handled), [])
        assert.strictEqual(handled.length, published)

        // Partitions that one member had all the time.
        const moved = new Set(
          [first, second].flatMap(({ app }) => app.of("PartitionReleased")).map((event) => event.partition)
        )
        const stayed = Array.from({ length: partitions }, (_, partition) => partition).filter(
          (each) => !moved.has(each)
        )
        assert.isNotEmpty(stayed)
        for (const partition of stayed) {
          const times = handled.filter((each) => each.partition === partition).map(({ atMillis }) => atMillis)
          const gap = Math.max(...times.slice(1).map((at, index) => at - times[index]!))
          assert.isBelow(gap, 3_000, `partition ${partition} stood still`)
        }
      }),
    150_000
  )
})
