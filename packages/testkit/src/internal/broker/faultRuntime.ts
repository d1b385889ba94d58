/**
 * Applies a fault plan: counts matching requests, draws random numbers, and decides what happens to a request. It owns those counts.
 */
import * as Duration from "effect/Duration"
import * as FaultPlan from "../../FaultPlan.ts"
import type { SeededRandom } from "./seededRandom.ts"

/** The parts of a request that faults can match. */
export interface Call {
  readonly operation: FaultPlan.Operation
  readonly clientId: string
  readonly topic?: string
  readonly groupId?: string
}

/** Everything that happens to one request. */
export interface FaultDecision {
  readonly delayMillis: number
  readonly lost: "no" | "request" | "response"
  readonly refusal: (FaultPlan.RequestEffect & { readonly _tag: "Refuse" | "ApplyThenFail" }) | undefined
  readonly copies: 1 | 2
  readonly corrupt: boolean
}

const untouched: FaultDecision = { delayMillis: 0, lost: "no", refusal: undefined, copies: 1, corrupt: false }

export class FaultRuntime {
  private readonly faults: Array<FaultPlan.Fault & { readonly _tag: "OnRequest" }> = []
  private readonly seen = new Map<FaultPlan.Fault, number>()
  private readonly random: SeededRandom
  private readonly applyToCluster: (effect: FaultPlan.ClusterEffect) => void

  constructor(random: SeededRandom, strike: (effect: FaultPlan.ClusterEffect) => void) {
    this.random = random
    this.applyToCluster = strike
  }

  add(fault: FaultPlan.Fault & { readonly _tag: "OnRequest" }): void {
    this.faults.push(fault)
  }

  /** Decides what happens to one request. Cluster effects apply before the request goes on. */
  decide(call: Call): FaultDecision {
    if (this.faults.length === 0) return untouched
    const effects: Array<FaultPlan.RequestEffect> = []
    for (const fault of [...this.faults]) {
      if (!matches(fault.trigger.match, call) || !this.due(fault)) continue
      if (FaultPlan.isClusterEffect(fault.effect)) this.applyToCluster(fault.effect)
      else effects.push(fault.effect)
    }
    return effects.length === 0 ? untouched : combine(effects)
  }

  private due(fault: FaultPlan.Fault & { readonly _tag: "OnRequest" }): boolean {
    if (fault.trigger._tag === "Chance") return this.random.next() < fault.trigger.probability
    const count = (this.seen.get(fault) ?? 0) + 1
    this.seen.set(fault, count)
    if (count < fault.trigger.nth) return false
    this.faults.splice(this.faults.indexOf(fault), 1)
    this.seen.delete(fault)
    return true
  }
}

const matches = (match: FaultPlan.Match, call: Call): boolean =>
  match.operation === call.operation &&
  (match.clientId === undefined || match.clientId === call.clientId) &&
  (match.topic === undefined || match.topic === call.topic) &&
  (match.groupId === undefined || match.groupId === call.groupId)

const combine = (effects: ReadonlyArray<FaultPlan.RequestEffect>): FaultDecision => {
  let decision = untouched
  for (const effect of effects) {
    switch (effect._tag) {
      case "Delay":
        decision = { ...decision, delayMillis: decision.delayMillis + Duration.toMillis(effect.duration) }
        break
      case "LoseRequest":
        decision = { ...decision, lost: "request" }
        break
      case "LoseResponse":
        if (decision.lost === "no") decision = { ...decision, lost: "response" }
        break
      case "Refuse":
      case "ApplyThenFail":
        decision = { ...decision, refusal: effect }
        break
      case "Duplicate":
        decision = { ...decision, copies: 2 }
        break
      case "Corrupt":
        decision = { ...decision, corrupt: true }
        break
    }
  }
  return decision
}
