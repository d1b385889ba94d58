/**
 * Faults that a test injects into its bus: members that join and leave, clients that die, requests that fail, partitions that get lost.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as FaultPlan from "../../FaultPlan.ts"
import type * as MemoryBroker from "../../MemoryBroker.ts"
import type { ClockDriver } from "../target/clockDriver.ts"
import type { Process } from "./process.ts"

/** A second process joins, gets its share of the partitions, and leaves. It leaves in the background, since its handlers may be running. */
export const forceRebalance = <E>(
  clockDriver: ClockDriver,
  scope: Scope.Scope,
  another: Effect.Effect<Process, E>,
  areAssigned: Effect.Effect<boolean>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const second = yield* Effect.orDie(another)
    yield* clockDriver.waitUntil(second.hasPartitions)
    yield* Effect.forkIn(second.close, scope, { startImmediately: true })
    yield* clockDriver.waitUntil(areAssigned)
  })

/** The faults that need a cluster in memory. */
export const injectors = (clockDriver: ClockDriver, process: Process, memory: MemoryBroker.Service | undefined) => {
  const interfere = (what: (memory: MemoryBroker.Service) => Effect.Effect<void>): Effect.Effect<void> =>
    memory === undefined
      ? Effect.die(new Error("Only a cluster in memory can be made to fail; this bus runs on one that was given."))
      : Effect.andThen(what(memory), clockDriver.untilIdle)
  return {
    crash: (binding: string, consumer?: number) =>
      interfere((memory) => {
        const open = process.sessions(binding)
        const dying = consumer === undefined ? open : open.slice(consumer, consumer + 1)
        return dying.length === 0
          ? Effect.die(new Error(`Binding '${binding}' has no such consumer to crash; open are ${open.length}.`))
          : Effect.forEach(dying, (clientId) => memory.inject({ _tag: "ConnectionDropped", clientId }), {
              discard: true
            })
      }),
    fail: (plan: FaultPlan.Fault | ReadonlyArray<FaultPlan.Fault>) =>
      // Copies of the faults: the broker counts by object, and a test may add the same fault twice.
      interfere((memory) => Effect.forEach([plan].flat(), (fault) => memory.addFault({ ...fault }), { discard: true })),
    partition: (topic: string, partition: number) => ({
      lose: interfere((memory) => memory.inject({ _tag: "PartitionLost", topic, partition }))
    })
  }
}
