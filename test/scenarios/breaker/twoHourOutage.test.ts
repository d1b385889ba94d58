/** The worked case of the breaker: a dependency is down for two hours, and records arrive all the time (connector seed §4.5, §4.9 layer 4). */
import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Exit } from "effect"
import { advance, bytes, headersOf, orders, scenario, start, Turns, text } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

const partitions = [0, 1, 2]

/** The retry and dead letter topics of the binding. */
const copyTopics = ["orders.retry-1", "orders.retry-2", "orders.DLT"]

type Kind = Partial<BindingOptions.Settings<Uint8Array | null, string>> & { readonly listenerType?: "BATCH" }

const kinds: Readonly<Record<string, Kind>> = {
  "partition by partition": {},
  "by key": { processingOrder: "key" },
  "in batches": { listenerType: "BATCH" }
}

const bindingOf = (settings: Kind, handle: (value: string) => Effect.Effect<void, Down>) =>
  Binding.make("orders", {
    ...orders,
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 2, initialBackoff: "1 second" },
      tiers: ["10 seconds", "1 minute"]
    }),
    circuitBreaker: { slidingWindowSize: 10, minimumNumberOfCalls: 6, waitDurationInOpenState: "1 minute" },
    onError: { Down: Route.retry },
    ...settings,
    handler: ({ value }) => handle(value)
  })

/** The members and the generation of the group, as its coordinator has them. */
const membership = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  const { members, generation } = yield* memory.group("billing")
  return { generation, members: members.map(({ memberId }) => memberId) }
})

/** How many records were ever written to each partition of the retry and dead letter topics. */
const written = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  const counts: Record<string, number> = {}
  for (const topic of copyTopics) {
    for (const partition of partitions) {
      const log = yield* Effect.exit(memory.log(topic, partition))
      counts[`${topic}-${partition}`] = Exit.isSuccess(log) ? log.value.length : 0
    }
  }
  return counts
})

describe("CB-15 a dependency that is down for two hours", () => {
  for (const [kind, settings] of Object.entries(kinds)) {
    scenario(
      `CB-15 ruling 10 ${kind}: no copy after the opening, the membership is kept, and then each record is handled in order`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          for (const topic of ["orders", ...copyTopics]) yield* memory.createTopic(topic, { partitions: 3 })
          let isDown = false
          const handled: Array<string> = []
          const app = yield* start(
            bindingOf(settings, (value) =>
              Effect.suspend(() => {
                if (isDown) return Effect.fail(new Down())
                handled.push(value)
                return Effect.void
              })
            )
          )
          let next = 0
          /** One record for each partition, named after partition and offset. */
          const write = Effect.gen(function* () {
            for (const partition of partitions) {
              const key = bytes(`key of ${partition}`)
              yield* memory.append("orders", partition, [{ key, value: bytes(`${partition}@${next}`) }])
            }
            next++
          })
          const state = () => app.of("BreakerChanged").at(-1)?.to ?? "CLOSED"

          for (let index = 0; index < 5; index++) yield* write
          yield* advance("1 minute")
          assert.lengthOf(handled, 15)
          const before = yield* membership
          assert.lengthOf(before.members, 1)

          isDown = true
          for (let second = 0; second < 60 && state() !== "OPEN"; second++) {
            yield* write
            yield* advance("1 second")
          }
          assert.strictEqual(state(), "OPEN")
          const opened = yield* written
          // The outage costs copies of the records that were needed to see it, before the opening. None of them is a dead letter.
          const copied = new Set<string>()
          for (const partition of partitions) {
            for (const record of yield* memory.log("orders.retry-1", partition)) {
              const headers = headersOf(record)
              copied.add(`${headers.get("x-eventbus-original-partition")}@${headers.get("x-eventbus-original-offset")}`)
            }
          }
          assert.isAtMost(copied.size, 6)

          for (let minute = 0; minute < 120; minute++) {
            yield* write
            yield* advance("1 minute")
            assert.deepStrictEqual(yield* written, opened)
            assert.deepStrictEqual(yield* membership, before)
          }
          assert.isAbove(app.of("BreakerChanged").filter(({ to }) => to === "HALF_OPEN").length, 60)
          assert.lengthOf(handled, 15)

          isDown = false
          for (let minute = 0; minute < 5; minute++) yield* advance("1 minute")
          assert.strictEqual(state(), "CLOSED")
          assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
          assert.deepStrictEqual(yield* written, opened)
          assert.deepStrictEqual(yield* membership, before)
          for (const tag of ["PartitionRevoked", "PartitionLost", "SessionCrashed"] as const) {
            assert.deepStrictEqual(app.of(tag), [])
          }
          for (const partition of partitions) {
            const all = Array.from({ length: next }, (_, offset) => `${partition}@${offset}`)
            const own = handled.filter((value) => value.startsWith(`${partition}@`))
            // Each one once, those that were copied before the opening too; the others in the order of their offsets.
            assert.sameMembers(own, all)
            assert.deepStrictEqual(
              own.filter((value) => !copied.has(value)),
              all.filter((value) => !copied.has(value))
            )
            assert.strictEqual(yield* memory.committed("billing", "orders", partition), BigInt(next))
          }
          const dead = app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered")
          assert.deepStrictEqual(
            dead.map(({ record }) => text(record.value)),
            []
          )
        }).pipe(Effect.provideService(Turns, 100))
    )
  }
})
