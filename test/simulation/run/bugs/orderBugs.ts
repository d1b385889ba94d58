/**
 * Planted bugs about order per key: each switches off one rule of its protocol, inside the connector.
 */
import { Effect } from "effect"
import { Unit } from "../../../../packages/core/src/internal/order/unit.ts"
import type { Scenario } from "../../scenario/Scenario.ts"
import type { PlantedBug } from "./PlantedBug.ts"

type Methods = "adopt" | "drain" | "evict" | "hold" | "park" | "roll" | "takeMain"

/** Puts a method in the place of one of all units, until the answer is called. */
const inPlaceOf =
  <M extends Methods>(
    method: M,
    change: (original: Unit[M]) => (this: Unit, ...args: Parameters<Unit[M]>) => unknown
  ) =>
  (): (() => void) => {
    const original = Unit.prototype[method]
    Object.assign(Unit.prototype, { [method]: change(original) })
    return () => Object.assign(Unit.prototype, { [method]: original })
  }

/** The own epoch of a member, as far as its generation tells it. */
const epochOf = (generation: number): number => generation * 2 ** 20

/** Only there a record that is handled twice is a fault. */
const isGentle = ({ faults, actions, outage }: Scenario): boolean =>
  faults.faults.length === 0 &&
  outage === undefined &&
  actions.every(({ _tag }) => _tag !== "Kill" && _tag !== "Pause") &&
  actions.some(({ _tag }) => _tag === "Stop")

export const orderBugs: ReadonlyArray<PlantedBug> = [
  {
    title: "commits its own epoch instead of the one in force at the offset",
    seenBy: ["order-covered", "order-overtaken", "losses"],
    sabotage: {
      commit: (offsets) =>
        offsets.map(({ metadata = "", ...commit }) => ({
          ...commit,
          metadata: metadata.replace(/epoch=\d+/, `epoch=${epochOf(commit.generation)}`)
        }))
    }
  },
  {
    title: "says nothing of what is done when it gives a partition up",
    seenBy: ["order-twice"],
    needs: isGentle,
    plant: inPlaceOf(
      "roll",
      (original) =>
        function (entry) {
          return this.stopping ? Effect.succeed(false) : original.call(this, entry)
        }
    )
  },
  {
    title: "finishes a record before its lock is acknowledged",
    seenBy: ["order-covered"],
    plant: inPlaceOf(
      "hold",
      (original) =>
        function (entry, slot) {
          original.call(this, entry, slot)
          if (slot.part === 0) this.partitionOf(0).tracker.finish(slot.sequence)
        }
    )
  },
  {
    title: "finishes the lock of a key before its followers are handled",
    seenBy: ["order-covered"],
    plant: inPlaceOf(
      "drain",
      (original) =>
        function (entry) {
          if (entry.slot !== undefined) this.partitionOf(entry.slot.part).tracker.finish(entry.slot.sequence)
          original.call(this, entry)
        }
    )
  },
  {
    title: "does not park what is queued in the lane of a key that fails",
    seenBy: ["order-overtaken"],
    needs: ({ bindings }) => bindings.some(({ processingOrder }) => processingOrder === "key"),
    plant: () => {
      const asked = new WeakSet<object>()
      return inPlaceOf(
        "takeMain",
        (original) =>
          function (record, sequence) {
            if (asked.has(record)) return false
            asked.add(record)
            return original.call(this, record, sequence)
          }
      )()
    }
  },
  {
    title: "does not park the key of a dead letter that is on its way",
    seenBy: ["order-overtaken"],
    plant: inPlaceOf(
      "park",
      (original) =>
        function (part, record, sequence, result) {
          return part === 0 && result.settlement === "DeadLettered"
            ? result
            : original.call(this, part, record, sequence, result)
        }
    )
  },
  {
    title: "reads the source again from one record too late",
    seenBy: ["order-overtaken"],
    plant: inPlaceOf(
      "evict",
      (original) =>
        function (entry, from) {
          original.call(this, entry, from + 1n)
        }
    )
  },
  {
    title: "forgets the parked keys of its predecessor",
    seenBy: ["order-covered", "order-overtaken"],
    plant: inPlaceOf("adopt", () => () => {})
  }
]
