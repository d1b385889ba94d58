/** A broker that accepts connections and answers nothing (SIGSTOP): a stop ends in time all the same, and nothing is lost. */
import { assert } from "@effect/vitest"
import { Binding, CurrentTransaction, DeadLetter, RetryPolicy, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Journal from "./journal.ts"
import * as Program from "./program.ts"

const records = 600
const shutdownMillis = 8_000

/** A process that has handled all records but the first one of partition 0. The copy of that one is refused, since its topic does not exist. */
const behindARefusedCopy = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>) {
  const name = Bus.fresh("frozen")
  const journal = yield* Journal.make
  yield* Bus.createTopic(name, 2)
  yield* Bus.publish(Bus.numbered(name, 2, records))
  const launch = Program.run("consumer.ts", {
    ...{ brokers, journal: journal.path, name, topic: name, groupId: name },
    ...{ handlerMillis: 0, blockMillis: 0, failsAt: "0" },
    settings: {
      ...{ ackMode: "MANUAL", missingTopics: "wait", shutdownTimeout: shutdownMillis },
      ...{ sessionTimeout: 6_000, heartbeatInterval: 1_000 }
    }
  })
  const program = yield* launch
  const isRefused = () => program.output().includes(`Cannot publish to '${name}.DLT'`)
  yield* Bus.until(
    "everything behind the copy is handled, and the copy is refused",
    () => isRefused() && journal.done().length === records - 1,
    {
      otherwise: program.output
    }
  )
  return { name, journal, program, launch, deadLetterTopic: `${name}.DLT` }
})

/** Stops a process with SIGTERM while `meanwhile` happens, and answers how long that took in milliseconds. */
const stopped = Effect.fnUntraced(function* <E, R>(program: Program.Program, meanwhile: Effect.Effect<void, E, R>) {
  const before = performance.now()
  yield* program.signal("SIGTERM")
  yield* Effect.forkChild(meanwhile)
  yield* Effect.timeout(program.exit, "60 seconds")
  return performance.now() - before
})

type Handle = (topic: string, value: string) => Effect.Effect<void>
type Make = (topic: string, out: string, handle: Handle) => Binding.Binding<never>

const settings = (topic: string) =>
  ({
    ...{ topic, groupId: topic, value: Serde.string, shutdownTimeout: shutdownMillis },
    ...{ sessionTimeout: 6_000, heartbeatInterval: 1_000, retry: RetryPolicy.blocking() }
  }) as const

const kinds: Readonly<Record<string, Make>> = {
  ordered: (topic, _, handle) =>
    Binding.make(topic, { ...settings(topic), handler: ({ value }) => handle(topic, value) }),
  unordered: (topic, _, handle) =>
    Binding.make(topic, {
      ...settings(topic),
      ...{ processingOrder: "unordered", concurrency: 2, deadLetter: DeadLetter.custom(() => Effect.void) },
      handler: ({ value }) => handle(topic, value)
    }),
  batch: (topic, _, handle) =>
    Binding.makeBatch(topic, {
      ...settings(topic),
      handleBatch: ({ deliveries }) =>
        Effect.forEach(deliveries, ({ value }) => handle(topic, value), { discard: true })
    }),
  transactional: (topic, out, handle) =>
    Binding.makeTransactional(topic, {
      ...settings(topic),
      handler: ({ value }) =>
        Effect.andThen(
          Effect.orDie(CurrentTransaction.send({ topic: out, key: null, value: Bus.bytes(value) })),
          handle(topic, value)
        )
    })
}

KafkaSuite.own("a stop in front of a frozen broker", {}, (it) => {
  it.effect(
    "C53 ruling 83 LIF-12 ends within `shutdownTimeout`, and the next process finds everything",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const story = Effect.gen(function* () {
          const { name, journal, program, launch, deadLetterTopic } = yield* behindARefusedCopy(cluster.bootstrap)
          yield* cluster.freeze(1)
          const millis = yield* Effect.ensuring(stopped(program, Effect.void), cluster.thaw(1))
          assert.isAtMost(millis, shutdownMillis + 1_000, program.output())
          yield* Bus.createTopic(deadLetterTopic, 2)
          yield* launch
          yield* Bus.lagIsZero(name, name, "90 seconds")
          assert.strictEqual(new Set(journal.done().map(({ value }) => value)).size, records - 1)
          const letters = yield* Bus.readAll(deadLetterTopic)
          assert.deepStrictEqual(
            letters.map(({ value }) => Bus.text(value)),
            ["0"]
          )
        })
        yield* Bus.on({ brokers: cluster.bootstrap }, story)
      }),
    240_000
  )

  it.effect(
    "C53 ruling 83 a copy that was refused before is published when broker and topic are there again, and nothing behind it is repeated",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const story = Effect.gen(function* () {
          const { name, journal, program, launch, deadLetterTopic } = yield* behindARefusedCopy(cluster.bootstrap)
          yield* cluster.freeze(1)
          const recover = Effect.andThen(Effect.delay(cluster.thaw(1), "1 second"), Bus.createTopic(deadLetterTopic, 2))
          const millis = yield* Effect.ensuring(stopped(program, recover), cluster.thaw(1))
          assert.isAtMost(millis, shutdownMillis + 1_000, program.output())
          yield* launch
          yield* Bus.lagIsZero(name, name, "90 seconds")
          assert.deepStrictEqual(Journal.repeated(journal.done()), [])
          assert.strictEqual(journal.done().length, records - 1)
          const letters = yield* Bus.readAll(deadLetterTopic)
          assert.deepStrictEqual(
            letters.map(({ value }) => Bus.text(value)),
            ["0"]
          )
        })
        yield* Bus.on({ brokers: cluster.bootstrap }, story)
      }),
    240_000
  )

  it.effect(
    "ruling 83 LIF-12 handlers of every kind that never end, open transactions and a dead letter strategy hold a stop up no longer",
    () =>
      Effect.gen(function* () {
        const cluster = yield* RealKafka.RealKafka
        const story = Effect.gen(function* () {
          const name = Bus.fresh("kinds")
          const topics = Object.keys(kinds).map((kind) => `${name}-${kind}`)
          for (const topic of [...topics, `${name}-out`]) yield* Bus.createTopic(topic, 2)
          for (const topic of topics) yield* Bus.publish(Bus.numbered(topic, 2, 20))
          let isStuck = true
          const started = new Set<string>()
          const handled = new Map(topics.map((topic) => [topic, new Set<string>()]))
          const handle = (topic: string, value: string) =>
            Effect.suspend(() => {
              started.add(topic)
              if (isStuck) return Effect.never
              handled.get(topic)!.add(value)
              return Effect.void
            })
          const bindings = Object.entries(kinds).map(([kind, make]) => make(`${name}-${kind}`, `${name}-out`, handle))
          const app = yield* Bus.start(...bindings)
          yield* Bus.until("a handler of each kind is stuck", () => started.size === topics.length)
          yield* cluster.freeze(1)
          const before = performance.now()
          yield* Effect.ensuring(app.close, cluster.thaw(1))
          assert.isAtMost(performance.now() - before, shutdownMillis + 1_000)
          isStuck = false
          yield* Bus.start(...bindings)
          for (const topic of topics) yield* Bus.lagIsZero(topic, topic, "90 seconds")
          assert.deepStrictEqual(
            topics.map((topic) => handled.get(topic)!.size),
            topics.map(() => 20)
          )
        })
        yield* Bus.on({ brokers: cluster.bootstrap }, story)
      }),
    240_000
  )
})
