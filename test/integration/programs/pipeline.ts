/**
 * A consumer with two retry tiers as a process of its own that kills itself (kill -9) at the point that its task names: at the nth publish or commit, in front
 * of it or behind it, or when records begin to wait. A record `n` passes in the main topic, in tier 1, in tier 2 or never, by the rest of n / 4.
 */
import { openSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, Broker, EventBusConnector, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Data, Effect, Layer, Result } from "effect"
import * as Transport from "../../transport.ts"
import { decodeTask, type Entry } from "../journal.ts"

class Down extends Data.TaggedError("Down") {}

const task = decodeTask(process.env.TASK)
const file = openSync(task.journal, "a")
const write = (entry: Entry): void => void writeSync(file, `${JSON.stringify(entry)}\n`)

let passes = 0
/** Does not return when this is the point. */
const pass = (point: string, topic: string): void => {
  const { diesAt } = task
  if (diesAt === undefined || diesAt.point !== point || diesAt.topic !== topic || ++passes < diesAt.nth) return
  process.kill(process.pid, "SIGKILL")
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}
const passing = (point: string, topic: string) => Effect.sync(() => pass(point, topic))

const mortal = (broker: Broker.Broker["Service"]): Broker.Broker["Service"] => ({
  ...broker,
  producer: (options) =>
    Effect.map(broker.producer(options), (producer) => ({
      ...producer,
      // Copies that the next record waits for are published alone, others together.
      send: (record) =>
        passing("publish", record.topic).pipe(
          Effect.andThen(producer.send(record)),
          Effect.tap(passing("acknowledged", record.topic))
        ),
      sendEach: (records, onAnswer) =>
        Effect.andThen(
          Effect.forEach(records, ({ topic }) => passing("publish", topic), { discard: true }),
          producer.sendEach(records, (index, answer) => {
            if (Result.isSuccess(answer)) pass("acknowledged", records[index]!.topic)
            onAnswer(index, answer)
          })
        )
    })),
  consumer: (options) =>
    Effect.map(broker.consumer(options), (session) => ({
      ...session,
      commit: (offsets) => {
        const each = (point: string) => Effect.forEach(offsets, ({ topic }) => passing(point, topic), { discard: true })
        return each("commit").pipe(Effect.andThen(session.commit(offsets)), Effect.andThen(each("committed")))
      }
    }))
})

const binding = Binding.make(task.name, {
  topic: task.topic,
  groupId: task.groupId,
  value: Serde.string,
  ...Transport.membership(task.settings),
  retry: RetryPolicy.tiered({
    blocking: { maxAttempts: 1 },
    tiers: [1_000, 1_500].map((delay) => ({ delay, maxAttempts: 1, concurrency: 16 }))
  }),
  handler: ({ record: { topic, partition, offset }, value, tier }) => {
    const of = { topic, partition, offset: Number(offset), value }
    write({ _tag: "Started", ...of })
    if (tier < Number(value) % 4) return Effect.fail(new Down())
    write({ _tag: "Done", ...of })
    return Effect.void
  },
  onError: { Down: Route.retry }
})

const delays = Layer.effectDiscard(
  Effect.flatMap(EventBusConnector.EventBusConnector, ({ subscribe }) =>
    subscribe((event) => {
      if (event._tag === "FetchPaused" && event.reasons.includes("delay")) pass("delay", event.topic)
    })
  )
)

const broker = Layer.effect(Broker.Broker, Effect.map(Broker.Broker, mortal)).pipe(
  Layer.provide(Transport.layer({ brokers: task.brokers }))
)
NodeRuntime.runMain(Layer.launch(delays.pipe(Layer.provideMerge(Binding.layer(binding)), Layer.provide(broker))))
