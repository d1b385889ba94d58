import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { FaultPlan, MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Exit, Layer } from "effect"
import { record, text } from "../../src/contract/harness.ts"
import { failedWith, join, type Probe } from "../../src/contract/probe.ts"

/** A member that commits its collected records every second and rejoins whenever its session ends. */
const persistentMember = (clientId: string, seen: Set<string>) =>
  Effect.forever(
    Effect.scoped(
      Effect.gen(function* () {
        const probe: Probe = yield* join({
          groupId: "g",
          topics: ["t"],
          clientId,
          sessionTimeout: "15 seconds",
          heartbeatInterval: "5 seconds"
        })
        let noted = 0
        const note = () => {
          for (; noted < probe.records.length; noted++) seen.add(text(probe.records[noted]!.value) ?? "")
        }
        // The probe commits on revocation by itself, so its last collected records count as well.
        yield* Effect.addFinalizer(() => Effect.sync(note))
        while (failedWith(probe) === undefined) {
          note()
          yield* Effect.ignore(probe.commitCollected([...probe.owned.values()]))
          yield* Effect.sleep("1 second")
        }
      })
    ).pipe(Effect.ignore, Effect.andThen(Effect.sleep("1 second")))
  )

/** Publishes for a while under faults. A member must see every acknowledged record, and the group must have read to the end. */
const run = (seed: number, options: MemoryBroker.Options) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    const broker = yield* Broker.Broker
    yield* memory.createTopic("t", { partitions: 4 })
    const seen = new Set<string>()
    for (const clientId of ["a", "b", "c"]) yield* Effect.forkScoped(persistentMember(clientId, seen))
    const producer = yield* broker.producer({ clientId: "p" })
    const acknowledged: Array<string> = []
    for (let n = 0; n < 120; n++) {
      const exit = yield* Effect.exit(producer.send(record("t", `${n}`, { partition: n % 4 })))
      if (Exit.isSuccess(exit)) acknowledged.push(`${n}`)
      yield* Effect.sleep("5 seconds")
    }
    // Past the last outage, every session timeout and every retry.
    yield* Effect.sleep("5 minutes")
    assert.deepStrictEqual(
      acknowledged.filter((value) => !seen.has(value)),
      [],
      `lost under seed ${seed}`
    )
    for (const partition of [0, 1, 2, 3]) {
      const { logEnd } = yield* memory.offsets("t", partition)
      assert.strictEqual(yield* memory.committed("g", "t", partition), logEnd, `not read to the end under seed ${seed}`)
    }
    assert.isAbove(acknowledged.length, 100)
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Layer.provideMerge(MemoryBroker.layer({ ...options, faults: FaultPlan.random(seed, 0.7) }), VirtualClock.layer)
    )
  )

describe("TST-01: no acknowledged record is lost under any fault", () => {
  for (const assignment of ["cooperative-sticky", "eager"] as const) {
    it.effect(assignment, () =>
      Effect.forEach(
        Array.from({ length: 8 }, (_, seed) => seed),
        (seed) => run(seed, { assignment, latency: { produce: "20 millis", commit: "30 millis", fetch: "5 millis" } }),
        { discard: true }
      )
    )
  }
})
