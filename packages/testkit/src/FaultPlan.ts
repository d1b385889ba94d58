/**
 * Fault injection for an in-memory broker. A plan is plain data, so it can be printed, shrunk and run again.
 *
 * A fault is a trigger and an effect. All randomness comes from the plan's seed: the same plan on the same program gives the same run.
 */
import type { BrokerError } from "@eventbus/core"
import type * as Duration from "effect/Duration"
import * as SeededRandom from "./internal/broker/seededRandom.ts"

/** The kinds of requests that a client sends to the broker. */
export type Operation =
  | "join"
  | "heartbeat"
  | "fetch"
  | "commit"
  | "produce"
  | "sendOffsets"
  | "endTransaction"
  | "admin"

/** Selects requests. An absent field matches everything. */
export interface Match {
  /** The kind of request. */
  readonly operation: Operation
  /** `client.id` of the sender. */
  readonly clientId?: string
  /** Topic of a fetch or produce request. */
  readonly topic?: string
  /** Group of a consumer's request. */
  readonly groupId?: string
}

/** The effect of a fault on one request. */
export type RequestEffect =
  /** The request takes longer. A delay beyond the request timeout is a lost response. */
  | {
      readonly _tag: "Delay"
      /** Added to the duration of the request. */
      readonly duration: Duration.Input
    }
  /** The request never arrives and the client times out. Producers retry. */
  | { readonly _tag: "LoseRequest" }
  /** The request takes effect, but its answer gets lost. Producers retry; a non-idempotent producer writes twice. */
  | { readonly _tag: "LoseResponse" }
  /** The request has no effect, and the caller gets this error unchanged. */
  | {
      readonly _tag: "Refuse"
      /** The failure of the caller. */
      readonly error: BrokerError.BrokerError
    }
  /** The request takes effect, and the caller gets this error all the same: the caller cannot know whether it happened. */
  | {
      readonly _tag: "ApplyThenFail"
      /** The failure of the caller. */
      readonly error: BrokerError.BrokerError
    }
  /** `produce` only: the broker writes the records twice, as after a retry that nothing deduplicates. */
  | { readonly _tag: "Duplicate" }
  /** `produce` only: the broker flips one byte of each value before it writes. */
  | { readonly _tag: "Corrupt" }

/** The effect of a fault on the cluster or on one client. An absent target is chosen at random. */
export type ClusterEffect =
  /** No broker answers for this long. Group members do not expire in that time. */
  | {
      readonly _tag: "BrokerDown"
      /** Length of the outage. */
      readonly duration: Duration.Input
    }
  /** Group requests fail with `CoordinatorUnavailable` for this long. */
  | {
      readonly _tag: "CoordinatorMoved"
      /** Length of the outage. */
      readonly duration: Duration.Input
    }
  /** The coordinator removes a member as after a session timeout. The member learns it at its next heartbeat. */
  | {
      readonly _tag: "SessionExpired"
      /** Group of the member. Default: any. */
      readonly groupId?: string
      /** `client.id` of the member. Default: any. */
      readonly clientId?: string
    }
  /** The coordinator takes one partition from its owner without a revocation, and assigns it again. */
  | {
      readonly _tag: "PartitionLost"
      /** Topic of the partition. Default: any. */
      readonly topic?: string
      /** Number of the partition. Default: any. */
      readonly partition?: number
    }
  /** A consumer's connection fails: its events end with `BrokerUnavailable`, and no LeaveGroup is sent. */
  | {
      readonly _tag: "ConnectionDropped"
      /** `client.id` of the consumer. Default: any. */
      readonly clientId?: string
    }
  /** A network partition: nothing passes between a client and the broker for this long, and neither is told. */
  | {
      readonly _tag: "Isolated"
      /** `client.id` of the client. Default: any. */
      readonly clientId?: string
      /** Length of the isolation. */
      readonly duration: Duration.Input
    }
  /** kill -9: nothing that this client sends arrives from now on, and no LeaveGroup is sent. */
  | {
      readonly _tag: "Kill"
      /** `client.id` of the client. */
      readonly clientId: string
    }

/** When a fault on a request applies. */
export type RequestTrigger =
  /** The nth matching request, counted from 1. */
  | {
      readonly _tag: "Nth"
      /** The requests that count. */
      readonly match: Match
      /** Number of the request, from 1. */
      readonly nth: number
    }
  /** Each matching request with this probability, 0 to 1. */
  | {
      readonly _tag: "Chance"
      /** The requests that the fault may affect. */
      readonly match: Match
      /** 0 to 1. */
      readonly probability: number
    }

/** A trigger and its effect. */
export type Fault =
  | {
      readonly _tag: "OnRequest"
      /** When the fault applies. */
      readonly trigger: RequestTrigger
      /** The effect on the request, the cluster or a client. */
      readonly effect: RequestEffect | ClusterEffect
    }
  /** Once, this long after the broker started. */
  | {
      readonly _tag: "At"
      /** Time since the broker started. */
      readonly after: Duration.Input
      /** The effect on the cluster or a client. */
      readonly effect: ClusterEffect
    }

/** A seed and its faults. */
export interface FaultPlan {
  /** Decides every random choice of the broker: equal seeds give equal journals. */
  readonly seed: number
  /** Evaluated in this order for each request. */
  readonly faults: ReadonlyArray<Fault>
}

/** The plan without faults. */
export const none: FaultPlan = { seed: 0, faults: [] }

/** A plan of the given faults. `seed` defaults to 0. */
export const make = (faults: ReadonlyArray<Fault>, seed = 0): FaultPlan => ({ seed, faults })

/** The effect applies to the nth matching request, counted from 1, once. */
export const nth = (nth: number, match: Match, effect: RequestEffect | ClusterEffect): Fault => ({
  _tag: "OnRequest",
  trigger: { _tag: "Nth", match, nth },
  effect
})

/** The effect applies to each matching request with this probability, 0 to 1. */
export const chance = (probability: number, match: Match, effect: RequestEffect | ClusterEffect): Fault => ({
  _tag: "OnRequest",
  trigger: { _tag: "Chance", match, probability },
  effect
})

/** The effect applies once, this long after the broker started. */
export const at = (after: Duration.Input, effect: ClusterEffect): Fault => ({ _tag: "At", after, effect })

/** True for an effect on the cluster or on a client, false for an effect on one request. */
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

/** The faults that `random` chooses from. A correct program survives each of them without losing a record. */
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
 * A random plan. `intensity`, from 0 (no faults) to 1 (faults all the time), scales the probability of request faults and the number of cluster
 * faults within the first ten minutes.
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
