/** A result-based consumer: what of it is the user's, and what its log lines say. */
import { assert, describe } from "@effect/vitest"
import {
  Binding,
  type Delivery,
  Hostname,
  LogFormat,
  Outcome,
  RetryPolicy,
  Serde,
  type TopicName
} from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger, References } from "effect"
import { advance, append, bytes, scenario, start, valuesOf } from "../bus.ts"

const retry = RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "5 seconds", maxAttempts: 1 }] })

type Handler<A> = (delivery: Delivery.Delivery<Uint8Array | null, A>) => Effect.Effect<Outcome.Outcome>

/** A filter is a function around a handler: what it holds back is done. */
const filtered =
  <A>(keeps: (delivery: Parameters<Handler<A>>[0]) => boolean, handler: Handler<A>): Handler<A> =>
  (delivery) =>
    keeps(delivery) ? handler(delivery) : Effect.succeed(Outcome.success)

describe("a result-based consumer", () => {
  scenario("EXT-07 handler, naming strategy, serializer, and filters around a handler can be replaced", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["1;later", "2;noise", "3;bad", "no order"])
      const order: Serde.Serde<readonly [string, string]> = Serde.make({
        name: "semicolons",
        decode: (value) => {
          const [id, kind] = new TextDecoder().decode(value).split(";")
          if (id === undefined || kind === undefined) throw new Error("no semicolon")
          return [id, kind] as const
        },
        encode: (parts) => bytes(parts.join(";"))
      })
      const naming: TopicName.NamingStrategy = {
        name: "own",
        retry: ({ topic }, n) => `again-${n}-${topic}`,
        deadLetter: ({ groupId, topic }) => `${groupId}-lost-${topic}`
      }
      const handled: Array<string> = []
      const app = yield* start(
        Binding.make("orders", {
          topic: "orders",
          groupId: "billing",
          value: order,
          naming,
          retry,
          handler: filtered(
            ({ value: [, kind] }) => kind !== "noise",
            ({ value: [id, kind], tier }) =>
              Effect.sync(() => {
                handled.push(`${id} ${tier}`)
                if (kind === "bad") return Outcome.failure()
                return tier === 0 ? Outcome.retry() : Outcome.success
              })
          )
        })
      )
      yield* advance("5 seconds")
      assert.deepStrictEqual(handled, ["1 0", "3 0", "1 1"])
      assert.deepStrictEqual(yield* valuesOf("again-1-orders"), ["1;later"])
      assert.deepStrictEqual(yield* valuesOf("billing-lost-orders"), ["3;bad", "no order"])
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 4n)
      assert.deepStrictEqual(
        app
          .of("Settled")
          .map(({ settlement }) => settlement)
          .sort(),
        ["DeadLettered", "DeadLettered", "Handled", "Handled", "Routed"]
      )
    })
  )

  scenario("RES-15 log lines of all four levels have message and retry as fields", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["first", "second"])
      yield* start(
        Binding.make("orders", {
          topic: "orders",
          groupId: "billing",
          value: Serde.string,
          retry,
          handler: ({ value }) =>
            Effect.gen(function* () {
              yield* Effect.logDebug("begun")
              yield* Effect.logInfo("charging")
              yield* Effect.logWarning("slow")
              yield* Effect.logError("declined")
              return value === "second" ? Outcome.retry() : Outcome.success
            })
        })
      )
      yield* advance("5 seconds")
    }).pipe(
      Effect.andThen(() => Effect.sync(() => lines.splice(0).map((line) => JSON.parse(line)))),
      Effect.tap((parsed) =>
        Effect.sync(() => {
          const messages = ["begun", "charging", "slow", "declined"]
          const own = parsed.filter(({ message }) => messages.includes(message))
          const at = (topic: string, offset: number, retryTier: number) =>
            ["DEBUG", "INFO", "WARN", "ERROR"].map((level) => ({ level, topic, partition: 0, offset, retryTier }))
          assert.deepStrictEqual(
            own.map(({ level, topic, partition, offset, retryTier }) => ({
              level,
              topic,
              partition,
              offset,
              retryTier
            })),
            [...at("orders", 0, 0), ...at("orders", 1, 0), ...at("orders.retry-1", 0, 1)]
          )
          const settled = parsed.filter(({ message }) => /^Record (routed|dead-lettered)/.test(message))
          assert.deepStrictEqual(
            settled.map(({ level, offset, retryTier, message }) => [
              level,
              offset,
              retryTier,
              /attempt \d+ of \d+/.exec(message)?.[0]
            ]),
            [
              ["WARN", 1, 0, "attempt 1 of 2"],
              ["WARN", 0, 1, "attempt 2 of 2"]
            ]
          )
        })
      ),
      Effect.provideService(References.MinimumLogLevel, "Debug"),
      Effect.provideService(Hostname.Hostname, "host"),
      Effect.provide(Logger.layer([Logger.map(LogFormat.json, (line) => void lines.push(line))])),
      Effect.asVoid
    )
  )
})

const lines: Array<string> = []
