/**
 * The holds on the bindings of a process, as far as it knows them. Until it has read the control topic, or has waited long enough for it, every binding is held: no record is fetched before.
 */
import type { BindingHolds, Hold, HoldCondition } from "../../FleetView.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import type { ClusterClock } from "./clusterClock.ts"
import type { ReadHold } from "./holdEntries.ts"

/** Whether the bindings of a process that cannot read the control topic when it starts run, or are held until it can. */
export type OnControlUnavailable = "run" | "hold"

/** `reading`: not yet. `unavailable`: the process has waited long enough. Once the holds are known they stay so, whatever becomes of the topic. */
export type Knowledge = "reading" | "known" | "unavailable"

export interface ProcessHolds {
  readonly knowledge: () => Knowledge
  readonly become: (knowledge: Knowledge) => void
  readonly of: (definition: Of) => BindingHolds
  /** Differs from an earlier one when `of` may answer otherwise. */
  readonly stamp: () => string
}

type Of = Pick<BindingDefinition<unknown>, "name" | "cluster" | "groupId">

export interface Options {
  readonly clock: ClusterClock
  readonly topic: string
  readonly onControlUnavailable: OnControlUnavailable
  readonly holds: () => ReadonlyMap<string, ReadHold>
  readonly revision: () => number
}

export const make = ({ clock, topic, onControlUnavailable, holds, revision }: Options): ProcessHolds => {
  let knowledge: Knowledge = "reading"
  const sinceMillis = clock.nowMillis()

  const byProcess = (of: Of, condition: HoldCondition, reason: string): BindingHolds => ({
    isReading: knowledge === "reading",
    binding: {
      ...{ binding: of.name, groupId: of.groupId, cluster: of.cluster, tier: undefined },
      ...{ by: "its own process", reason, condition, sinceMillis, untilMillis: undefined }
    },
    tiers: new Map()
  })
  const active = () => activeAt(holds(), clock.nowMillis())

  return {
    knowledge: () => knowledge,
    become: (next) => {
      knowledge = next
    },
    of: (definition) => {
      if (knowledge === "reading") return byProcess(definition, "reading-control", `it is reading topic '${topic}'`)
      if (knowledge === "unavailable" && onControlUnavailable === "hold") {
        const reason = `topic '${topic}' cannot be read, and onControlUnavailable is 'hold'`
        return byProcess(definition, "control-unavailable", reason)
      }
      const own = active().filter((hold) => isOf(hold, definition))
      return {
        isReading: false,
        binding: own.find(({ tier }) => tier === undefined),
        tiers: new Map(own.flatMap((hold) => (hold.tier === undefined ? [] : [[hold.tier, hold] as const])))
      }
    },
    stamp: () => `${knowledge} ${revision()} ${active().length}`
  }
}

/** The holds that have not ended. */
export const activeAt = (holds: ReadonlyMap<string, ReadHold>, nowMillis: number): ReadonlyArray<Hold> =>
  Array.from(holds.values(), ({ hold }) => hold).filter(
    ({ untilMillis }) => untilMillis === undefined || nowMillis < untilMillis
  )

/** Whether the hold is on this binding, or on one of its retry tiers. */
export const isOf = (hold: Hold, { name, cluster, groupId }: Of): boolean =>
  hold.binding === name && hold.cluster === cluster && hold.groupId === groupId
