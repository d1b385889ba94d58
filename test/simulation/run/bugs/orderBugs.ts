/**
 * Planted bugs about order per key: each switches off one rule of its protocol, inside the connector.
 */
import { Effect } from "effect"
import type { Entry } from "../../../../packages/core/src/internal/order/entry.ts"
import { KeyTable } from "../../../../packages/core/src/internal/order/keyTable.ts"
import { Locks } from "../../../../packages/core/src/internal/order/locks.ts"
import { Slots } from "../../../../packages/core/src/internal/order/slots.ts"
import { Unit } from "../../../../packages/core/src/internal/order/unit.ts"
import * as Directed from "../../scenario/directed.ts"
import type { Scenario } from "../../scenario/Scenario.ts"
import type { PlantedBug } from "./PlantedBug.ts"

/** Puts a method in the place of one of a class, until the answer is called. */
const inPlaceOf =
  <Self extends object, M extends keyof Self>(
    type: { readonly prototype: Self },
    method: M,
    change: (
      original: Self[M]
    ) => Self[M] extends (...args: infer Args) => unknown ? (this: Self, ...args: Args) => unknown : never
  ) =>
  (): (() => void) => {
    const original = type.prototype[method]
    Object.assign(type.prototype, { [method]: change(original) })
    return () => Object.assign(type.prototype, { [method]: original })
  }

const partitionOf = ({ options: { main, tiers } }: Unit, part: number) => (part === 0 ? main : tiers[part - 1]!)

/** The own epoch of a member, as far as its generation tells it. */
const epochOf = (generation: number): number => generation * 2 ** 20

/** Only there a record that is handled twice is a fault. */
const isGentle = ({ faults, actions, outage }: Scenario): boolean =>
  faults.faults.length === 0 &&
  outage === undefined &&
  actions.every(({ _tag }) => _tag !== "Kill" && _tag !== "Pause") &&
  actions.some(({ _tag }) => _tag === "Stop")

/** Whether a key has nothing left to do, wherever its lock and older ones of it are. */
const isDone = (entry: Entry): boolean =>
  entry.isIdle && !entry.isGone && entry.move === undefined && entry.slot !== undefined && !entry.hasFollowers

/** Frees keys also where their lock is not the first unfinished record of its retry topic. */
const freeBehindTheFront = (): (() => void) => {
  const keys = new WeakMap<Slots, Set<Entry>>()
  const removals = [
    inPlaceOf(
      Slots,
      "hold",
      (original) =>
        function (entry, slot) {
          original.call(this, entry, slot)
          keys.set(this, (keys.get(this) ?? new Set()).add(entry))
        }
    )(),
    inPlaceOf(
      Slots,
      "front",
      (original) =>
        function (part) {
          const behind = Array.from(keys.get(this) ?? []).find((entry) => entry.slot?.part === part && isDone(entry))
          return behind ?? original.call(this, part)
        }
    )(),
    inPlaceOf(Slots, "isFree", () => isDone)()
  ]
  return () => {
    for (const remove of removals) remove()
  }
}

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
    plant: inPlaceOf(Locks, "renew", () => () => Effect.succeed(false))
  },
  {
    title: "finishes a record before its lock is acknowledged",
    seenBy: ["order-covered"],
    plant: inPlaceOf(
      Slots,
      "hold",
      (original) =>
        function (entry, slot) {
          original.call(this, entry, slot)
          if (slot.part === 0) this.finishUnheld(0, slot.sequence)
        }
    )
  },
  {
    title: "finishes the lock of a key before its followers are handled",
    seenBy: ["order-covered"],
    plant: inPlaceOf(
      Unit,
      "drain",
      (original) =>
        function (entry) {
          if (entry.slot !== undefined) partitionOf(this, entry.slot.part).tracker.finish(entry.slot.sequence)
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
        Unit,
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
      Unit,
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
      KeyTable,
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
    plant: inPlaceOf(
      KeyTable,
      "add",
      (original) =>
        function (entry) {
          if (entry.hop === 0) original.call(this, entry)
        }
    )
  },
  {
    title: "frees a key behind the front of its retry topic",
    seenBy: ["order-twice"],
    directed: [Directed.behindTheFront, Directed.behindAnOlderLock],
    plant: freeBehindTheFront
  },
  {
    title: "begins without its claim in the last retry topic",
    seenBy: ["order-covered", "order-skipped"],
    directed: [Directed.lateLock],
    sabotage: { claims: (topic) => !topic.endsWith("2") }
  },
  {
    title: "finishes a superseded lock before its successor is acknowledged",
    seenBy: ["order-covered"],
    directed: [Directed.superseded],
    plant: inPlaceOf(
      Unit,
      "takeTier",
      (original) =>
        function (part, record, sequence) {
          const taken = original.call(this, part, record, sequence)
          const { move } = (record.key === null ? undefined : this.table.get(record.key)) ?? {}
          const at = move?.slots.findIndex((slot) => slot.part === part && slot.sequence === sequence) ?? -1
          if (at < 0) return taken
          move?.slots.splice(at, 1)
          partitionOf(this, part).tracker.finish(sequence)
          this.options.committer.mark(partitionOf(this, part))
          return taken
        }
    )
  }
]
