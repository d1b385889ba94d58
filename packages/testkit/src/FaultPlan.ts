/**
 * What goes wrong on an in-memory broker, and when: a value, so that a plan can be printed, shrunk and run again.
 *
 * A fault is a trigger and an effect. Chance comes from the plan's seed alone: the same plan on the same program is the same run.
 */
import type { BrokerError } from "@eventbus/core"
import type { Duration } from "effect"
import * as SeededRandom from "./internal/broker/seededRandom.ts"

/** What a client can ask of the broker. */
export type Operation =
  | "join"
  | "heartbeat"
  | "fetch"
  | "commit"
  | "produce"
  | "sendOffsets"
  | "endTransaction"
  | "admin"

/** Which requests a fault is about; what is left out matches everything. */
export interface Match {
  readonly operation: Operation
  readonly clientId?: string
  readonly topic?: string
  readonly groupId?: string
}

/** What happens to one request. */
export type RequestEffect =
  /** Takes longer. Longer than the client waits for an answer, it is a lost response. */
  | { readonly _tag: "Delay"; readonly duration: Duration.Input }
  /** Never arrives; the client waits for an answer in vain. Producers send again. */
  | { readonly _tag: "LoseRequest" }
  /** Takes effect, but its answer gets lost. Producers send again: a non-idempotent one writes twice. */
  | { readonly _tag: "LoseResponse" }
  /** Has no effect and is answered with this error, which goes to the caller as it is. */
  | { readonly _tag: "Refuse"; readonly error: BrokerError.BrokerError }
  /** Takes effect, and yet the caller gets this error: the "it may have happened" that every caller must live with. */
  | { readonly _tag: "ApplyThenFail"; readonly error: BrokerError.BrokerError }
  /** `produce` only: the records are written twice, as by a resend that nothing recognises. */
  | { readonly _tag: "Duplicate" }
  /** `produce` only: one byte of each value is flipped before it is written. */
  | { readonly _tag: "Corrupt" }

/** What happens to the cluster or to one client. A target that is left out is picked by chance among those that there are. */
export type ClusterEffect =
  /** No broker answers for so long. Group members are not expired for silence in that time. */
  | { readonly _tag: "BrokerDown"; readonly duration: Duration.Input }
  /** Group requests are answered with `CoordinatorUnavailable` for so long. */
  | { readonly _tag: "CoordinatorMoved"; readonly duration: Duration.Input }
  /** A member is removed as if it had been silent too long; it notices at its next heartbeat. */
  | { readonly _tag: "SessionExpired"; readonly groupId?: string; readonly clientId?: string }
  /** One partition is taken from its owner without asking, and assigned anew. */
  | { readonly _tag: "PartitionLost"; readonly topic?: string; readonly partition?: number }
  /** A consumer's client dies loudly: its events fail with `BrokerUnavailable`, no leave is sent. */
  | { readonly _tag: "ConnectionDropped"; readonly clientId?: string }
  /** Nothing gets through between a client and the broker for so long; neither is told. */
  | { readonly _tag: "Isolated"; readonly clientId?: string; readonly duration: Duration.Input }
  /** kill -9: nothing that this client sends arrives any more, and nobody is told. */
  | { readonly _tag: "Kill"; readonly clientId: string }

/** When a fault strikes. */
export type RequestTrigger =
  /** The nth matching request, counted from 1. */
  | { readonly _tag: "Nth"; readonly match: Match; readonly nth: number }
  /** Each matching request with this probability, 0 to 1. */
  | { readonly _tag: "Chance"; readonly match: Match; readonly probability: number }

export type Fault =
  | { readonly _tag: "OnRequest"; readonly trigger: RequestTrigger; readonly effect: RequestEffect | ClusterEffect }
  /** Once, so long after the broker started. */
  | { readonly _tag: "At"; readonly after: Duration.Input; readonly effect: ClusterEffect }

export interface FaultPlan {
  readonly seed: number
  readonly faults: ReadonlyArray<Fault>
}

/** Nothing goes wrong. */
export const none: FaultPlan = { seed: 0, faults: [] }

export const make = (faults: ReadonlyArray<Fault>, seed = 0): FaultPlan => ({ seed, faults })

/** The nth matching request, counted from 1, meets the effect. */
export const nth = (nth: number, match: Match, effect: RequestEffect | ClusterEffect): Fault => ({
  _tag: "OnRequest",
  trigger: { _tag: "Nth", match, nth },
  effect
})

/** Each matching request meets the effect with this probability (0 to 1). */
export const chance = (probability: number, match: Match, effect: RequestEffect | ClusterEffect): Fault => ({
  _tag: "OnRequest",
  trigger: { _tag: "Chance", match, probability },
  effect
})

/** The effect strikes once, so long after the broker started. */
export const at = (after: Duration.Input, effect: ClusterEffect): Fault => ({ _tag: "At", after, effect })

/** True for effects that strike the cluster or a client, false for those of one request. */
export const isClusterEffect = (effect: RequestEffect | ClusterEffect): effect is ClusterEffect =>
  clusterTags.has(effect._tag)

const clusterTags: ReadonlySet<string> = new Set<ClusterEffect["_tag"]>([
  "BrokerDown",
  "CoordinatorMoved",
  "SessionExpired",
  "PartitionLost",
  "ConnectionDropped",
  "Isolated",
  "Kill"
])

/** What `random` may choose from: every kind of trouble that a correct program survives without losing a record. */
const requestMenu: ReadonlyArray<readonly [Operation, RequestEffect]> = [
  ["produce", { _tag: "LoseRequest" }],
  ["produce", { _tag: "LoseResponse" }],
  ["produce", { _tag: "Duplicate" }],
  ["produce", { _tag: "Delay", duration: "2 seconds" }],
  ["commit", { _tag: "LoseRequest" }],
  ["commit", { _tag: "LoseResponse" }],
  ["commit", { _tag: "Delay", duration: "3 seconds" }],
  ["fetch", { _tag: "Delay", duration: "1 second" }],
  ["heartbeat", { _tag: "LoseRequest" }],
  ["join", { _tag: "Delay", duration: "2 seconds" }]
]

const clusterMenu: ReadonlyArray<ClusterEffect> = [
  { _tag: "BrokerDown", duration: "15 seconds" },
  { _tag: "CoordinatorMoved", duration: "5 seconds" },
  { _tag: "SessionExpired" },
  { _tag: "PartitionLost" },
  { _tag: "ConnectionDropped" },
  { _tag: "Isolated", duration: "20 seconds" },
  { _tag: "Isolated", duration: "2 minutes" }
]

/**
 * A plan made by chance. `intensity` from 0 (nothing) to 1 (something is always wrong) scales how likely each request fails and how
 * many cluster faults fall into the first ten minutes.
 */
export const random = (seed: number, intensity: number): FaultPlan => {
  const chances = SeededRandom.make(seed)
  const onRequests = requestMenu.map(([operation, effect]) =>
    chance(intensity * 0.1 * chances.next(), { operation }, effect)
  )
  const strikes = Math.round(intensity * 10)
  const onCluster = Array.from({ length: strikes }, () =>
    at(chances.below(600_000), clusterMenu[chances.below(clusterMenu.length)]!)
  )
  return { seed, faults: [...onRequests, ...onCluster] }
}
