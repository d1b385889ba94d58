import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Random } from "effect"
import { advance, append, orders, runScenario, scenario, start, Turns, until } from "../scenarios/bus.ts"

const perPartition = 20

const valuesOf = (partition: number) => Array.from({ length: perPartition }, (_, offset) => `${partition}/${offset}`)

const all = [0, 1, 2].flatMap(valuesOf)

/** Looks at every commit in the moment in which the group accepts it. */
const watch = (handled: ReadonlyArray<string>, problems: Array<string>): MemoryBroker.Journal => {
  const last = new Map<string, bigint>()
  return (entry) => {
    if (entry._tag !== "Committed") return
    for (const { partition, offset } of entry.offsets) {
      const owner = `${partition} ${entry.memberId} ${entry.generation}`
      if (offset < (last.get(owner) ?? 0n)) problems.push(`${owner}: ${last.get(owner)} then ${offset}`)
      last.set(owner, offset)
      const missing = valuesOf(partition)
        .slice(0, Number(offset))
        .filter((value) => !handled.includes(value))
      if (missing.length > 0) problems.push(`${owner}: committed ${offset} without ${missing.join(" ")}`)
    }
  }
}

/** An instance loses a partition, dies, or hands over to another one, at moments chosen by the seed. */
const run = (seed: number) => {
  const handled: Array<string> = []
  const problems: Array<string> = []
  const binding = Binding.make("orders", {
    ...orders,
    concurrency: 3,
    ackMode: "MANUAL",
    maxPollRecords: 20,
    handler: ({ value }) =>
      Effect.andThen(
        Effect.sleep("100 millis"),
        Effect.sync(() => handled.push(value))
      )
  })
  const body = Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders", { partitions: 3 })
    for (const partition of [0, 1, 2]) yield* append("orders", partition, valuesOf(partition))
    let app = yield* start(binding)
    for (let disturbance = 0; disturbance < 3; disturbance++) {
      yield* advance(yield* Random.nextIntBetween(0, 700))
      const kind = yield* Random.nextIntBetween(0, 3)
      if (kind === 0) {
        yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: yield* Random.nextIntBetween(0, 3) })
      } else if (kind === 1) {
        yield* memory.inject({ _tag: "ConnectionDropped" })
      } else {
        const next = yield* start(binding)
        yield* Effect.forkScoped(app.close)
        app = next
      }
    }
    yield* until(() => new Set(handled).size === all.length, "500 millis")
    yield* advance("1 second")
    assert.deepStrictEqual(problems, [], `seed ${seed}`)
    for (const partition of [0, 1, 2]) {
      assert.strictEqual(yield* memory.committed("billing", "orders", partition), BigInt(perPartition), `seed ${seed}`)
    }
  })
  return runScenario(body.pipe(Random.withSeed(seed), Effect.provideService(Turns, 50)), {
    onEvent: watch(handled, problems),
    faults: { seed, faults: [] }
  })
}

describe("C14 a commit reaches past a record that was not finished when the partition was revoked", () => {
  scenario(
    "OFF-06 OFF-08 OFF-09 NFR-01 200 seeded runs: no gap, no commit past unfinished work, no commit backwards",
    () =>
      Effect.promise(async () => {
        for (let seed = 1; seed <= 200; seed++) await run(seed)
      })
  )
})
