/** Records that are written and read all the time, while something happens to the connections. */
import { assert } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Serde } from "@eventbus/core"
import { Effect, Fiber, Schedule } from "effect"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"

export interface SteadyTraffic {
  readonly app: Bus.App
  /** Records acknowledged, and records handled, so far. */
  readonly written: () => number
  readonly handled: () => number
  /** Waits until so many more records have been handled. */
  readonly goesOn: (records?: number) => Effect.Effect<void>
  /** Stops writing and waits for the last record: every one that was acknowledged was handled, in order. */
  readonly endsWell: Effect.Effect<void>
}

/** By one producer and one consumer of this cluster; the topic has one partition. A send that fails is repeated. */
export const start = Effect.fnUntraced(function* (title: string) {
  const name = Bus.fresh(title)
  const handled: Array<number> = []
  const made = Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.string,
    retry: RetryPolicy.blocking(),
    // A session that ended is noticed soon.
    ...Transport.membership({ heartbeatInterval: "1 second" }),
    handler: ({ value }) => Effect.sync(() => void handled.push(Number(value)))
  })
  yield* Bus.createTopic(name, 1)
  const app = yield* Bus.start(made)
  const { send } = yield* (yield* Broker.Broker).producer({ closeTimeout: "1 second" })
  let written = 0
  let writing = true
  const write = Effect.gen(function* () {
    while (writing) {
      const record = { topic: name, key: null, value: Bus.bytes(String(written)) }
      yield* Effect.retry(send(record), Schedule.spaced("50 millis"))
      written++
      yield* Effect.sleep("10 millis")
    }
  })
  const writer = yield* Effect.forkScoped(Effect.orDie(write))
  const seen = () => new Set(handled).size
  const state = () => ({ written, seen: seen(), crashes: app.of("SessionCrashed").map(({ error }) => error.message) })
  const traffic: SteadyTraffic = {
    app,
    written: () => written,
    handled: seen,
    goesOn: (records = 50) =>
      Effect.suspend(() => {
        const goal = seen() + records
        return Bus.until(`${records} more records`, () => seen() >= goal, { otherwise: state })
      }),
    endsWell: Effect.gen(function* () {
      writing = false
      yield* Fiber.join(writer)
      yield* Bus.until("every record is handled", () => seen() === written, { otherwise: state })
      assert.deepStrictEqual(
        [...new Set(handled)],
        Array.from({ length: written }, (_, n) => n)
      )
    })
  }
  yield* traffic.goesOn(1)
  return traffic
})
