/**
 * A seed decides a scenario: bindings, records and how their handling goes, processes, actions of operators and machines, and faults. A value, so that
 * it can be told in words and run again.
 */
import type { FaultPlan } from "@eventbus/testkit"

/** The course of handling one record. Failures count over the whole group, so a record that failed in another process goes on from there. */
export type Behaviour =
  | { readonly _tag: "Fine"; readonly millis: number }
  /** Fails this number of calls, then succeeds. */
  | { readonly _tag: "Flaky"; readonly failures: number; readonly how: Failing; readonly millis: number }
  | { readonly _tag: "Broken"; readonly how: Failing; readonly millis: number }
  /** Fails with an error that goes to the dead letter topic at once, or is dropped at once. */
  | { readonly _tag: "Rejected" | "Ignorable" }
  /** Fails this number of calls with an error that goes to a tier at once, then succeeds. */
  | { readonly _tag: "Busy"; readonly failures: number; readonly route: Route; readonly millis: number }
  /** Its first failure pauses the binding. */
  | { readonly _tag: "Alarming" }
  /** Its bytes cannot be decoded. */
  | { readonly _tag: "Undecodable" }
  /** This number of calls never returns, then it succeeds. */
  | { readonly _tag: "Stuck"; readonly calls: number }
  /** The handler cannot be interrupted for this long. */
  | { readonly _tag: "Stubborn"; readonly millis: number }

/** The route of an error: the next tier, a tier by its number, or the first tier with at least this delay. */
export type Route =
  | { readonly _tag: "Next" }
  | { readonly _tag: "Tier"; readonly tier: number }
  | { readonly _tag: "After"; readonly millis: number }

export type Failing = "fail" | "die" | "throw" | "interrupt"

export interface RecordPlan {
  readonly id: string
  readonly partition: number
  readonly key: string | null
  readonly behaviour: Behaviour
  /** The producer set headers of the connector on it, all of them false. */
  readonly forged: boolean
  /** Its headers claim that a replay published it. */
  readonly claim: ReplayClaim | undefined
}

/** Marks of a replay on a record that no replay published: the bond is missing, or is that of another record (ruling 70). */
export interface ReplayClaim {
  readonly group: string
  /** The part of the bond that is not the record's own. */
  readonly bond: "none" | "time" | "partition" | "topic" | "cluster"
}

/** The dead letters that an operator replays. */
export type ReplayOrder =
  | { readonly _tag: "Next"; readonly count: number }
  | { readonly _tag: "Window"; readonly fromMillis: number; readonly toMillis: number }
  /** Those that wait, or every second or third of them. */
  | { readonly _tag: "Chosen"; readonly every: number }
  | { readonly _tag: "ToTier"; readonly tier: number; readonly count: number }

/** One retry tier. Neighbours with equal delays share a topic. */
export interface TierPlan {
  /** The wait before the first delivery. */
  readonly delayMillis: number
  /** Factor from one wait to the next; 1 for a fixed delay. */
  readonly multiplier: number
  readonly maxAttempts: number
  readonly concurrency: number
}

export interface BreakerPlan {
  readonly windowType: "count" | "time"
  /** Calls, or seconds. */
  readonly windowSize: number
  readonly minimumCalls: number
  readonly failureRate: number
  readonly permits: number
  readonly waitMillis: number
  readonly slowMillis: number
  readonly automaticPauseOnOpen: boolean
  /** Each reopening waits longer. */
  readonly backsOff: boolean
  /** A probe asks the dependency before a record is tried. */
  readonly probes: boolean
}

/** A process of a service. */
export interface ProcessPlan {
  /** Number of consumers of each binding. */
  readonly concurrency: number
  readonly service: number
}

/** Order per key through retry topics. */
export interface PerKeyPlan {
  readonly onDeadLetter: "continue" | "hold"
  readonly holdForMillis: number
  readonly maxParkedKeys: number
  readonly maxParkedBytes: number
}

/** A deploy changes it. */
export type OrderingMode = "PER_KEY" | "RELAXED_IN_RETRY"

export interface BindingPlan {
  readonly name: string
  /** Bindings of one service run together in its processes. Another service is another program, which shares no connector with them. */
  readonly service: number
  readonly topic: string
  /** More topics that the same binding reads, each with as many partitions. */
  readonly otherTopics: ReadonlyArray<string>
  readonly groupId: string
  readonly partitions: number
  readonly listener: "single" | "batch" | "whole-batch" | "transactional"
  /** The error of a whole-batch handler when a record fails. */
  readonly verdict: "from" | "these" | "none"
  readonly processingOrder: "partition" | "key" | "unordered"
  readonly ackMode: "MANUAL_IMMEDIATE" | "MANUAL"
  readonly batchFailureStrategy: "SEEK_TO_FAILED" | "DLQ_AND_CONTINUE"
  readonly onExhausted: "dead-letter" | "halt"
  readonly maxReplays: number
  /** Its dead letter strategy has a handler. */
  readonly handlesLetters: boolean
  /** The handler runs once for each key of the default kind. */
  readonly isIdempotent: boolean
  readonly membership: "dynamic" | "static"
  readonly maxAttempts: number
  readonly tiers: ReadonlyArray<TierPlan>
  readonly tierConsumer: "shared" | "separate"
  readonly breaker: BreakerPlan | undefined
  /** Default: the order of a key is kept in a topic alone. */
  readonly perKey?: PerKeyPlan
  readonly maxPollRecords: number
  readonly maxInFlight: number | undefined
  readonly maxBufferedRecords: number
  readonly commitIntervalMillis: number
  /** Longest time of a fetch without records: long, so that idle time costs little. */
  readonly maxWaitMillis: number
  readonly shutdownTimeoutMillis: number
}

/** An action from outside, at a time after the beginning. */
export type Action = { readonly atMillis: number } & (
  | {
      readonly _tag: "Publish"
      readonly binding: number
      /** One of the binding's other topics. Default: its first one. */
      readonly topic?: string
      readonly records: ReadonlyArray<RecordPlan>
      /** The same records as other bindings of the topic read them. */
      readonly others: ReadonlyArray<{ readonly binding: number; readonly records: ReadonlyArray<RecordPlan> }>
    }
  /** Offsets without a readable record: transaction markers, or records of an aborted transaction. */
  | {
      readonly _tag: "Hole"
      readonly binding: number
      readonly partition: number
      readonly kind: "control" | "aborted"
    }
  | { readonly _tag: "Compact"; readonly binding: number; readonly partition: number }
  /** Retention deletes half of a log, or all of it. */
  | {
      readonly _tag: "Truncate"
      readonly binding: number
      /** A retry topic, or another one of the binding's topics. Default: as `of` says. */
      readonly topic?: string
      readonly partition: number
      readonly of: "main" | "letters"
      readonly share: "half" | "all"
    }
  /** A topic is deleted, and made again after the gap unless somebody else has made it by then. */
  | { readonly _tag: "Remake"; readonly topic: string; readonly partitions: number; readonly gapMillis: number }
  | {
      readonly _tag: "Replay"
      readonly process: number
      readonly binding: number
      readonly order: ReplayOrder
    }
  /** An operator gives up every so manieth dead letter that waits. */
  | { readonly _tag: "Discard"; readonly process: number; readonly binding: number; readonly every: number }
  /** An operator deletes the dead letters of before some time. */
  | { readonly _tag: "Purge"; readonly process: number; readonly binding: number; readonly beforeMillis: number }
  /** An operator decides about every so manieth key that is held, in whatever process its partition is. */
  | {
      readonly _tag: "Decide"
      readonly process: number
      readonly binding: number
      readonly verb: "retry" | "skip"
      readonly every: number
    }
  /** Somebody reads the figures of all processes. */
  | { readonly _tag: "Read" }
  /** A reader of committed records looks at the output of a transactional binding. */
  | { readonly _tag: "Observe"; readonly binding: number }
  /** `topic`: a retry topic. Default: the binding's first one. */
  | { readonly _tag: "Grow"; readonly binding: number; readonly topic?: string; readonly partitions: number }
  /** A deploy: processes that start from now on keep the order of each key through retry topics, or do not. */
  | { readonly _tag: "Deploy"; readonly orderingMode: OrderingMode }
  | { readonly _tag: "Start" | "Stop" | "Kill"; readonly process: number }
  | { readonly _tag: "Pause" | "Resume"; readonly process: number; readonly binding: number }
)

export interface RetryTopicsPlan {
  readonly partitions: number
  readonly timestampType: "CreateTime" | "LogAppendTime"
}

export interface Scenario {
  readonly seed: number
  readonly interleaving: "first-come" | "shuffled"
  readonly assignment: "cooperative-sticky" | "eager"
  readonly latencyMillis: number
  /** Time of a request that adds offsets to a transaction, or that ends it. */
  readonly transactionLatencyMillis: number
  readonly maxRecordsPerChunk: number
  readonly bindings: ReadonlyArray<BindingPlan>
  readonly processes: ReadonlyArray<ProcessPlan>
  /** The retry topics as somebody has made them before the first process starts. Default: the connector makes them. */
  readonly retryTopics?: RetryTopicsPlan
  readonly actions: ReadonlyArray<Action>
  readonly faults: FaultPlan.FaultPlan
  /** Number of faults in the plan: none, some or many. */
  readonly intensity: number
  readonly faultPeriodMillis: number
  /** Time in which a dependency is down: a handler that would succeed fails. */
  readonly outage: Outage | undefined
}

export interface Outage {
  /** The name of the binding. */
  readonly binding: string
  readonly fromMillis: number
  readonly toMillis: number
}

/** Epoch milliseconds at which every run begins. */
export const beginMillis = 1_700_000_000_000

export const sessionTimeoutMillis = 12_000
export const rebalanceTimeoutMillis = 20_000
export const maxPollIntervalMillis = 60_000

export const isDown = ({ outage }: Scenario, binding: string, atMillis: number): boolean =>
  outage !== undefined && outage.binding === binding && atMillis >= outage.fromMillis && atMillis < outage.toMillis

/** Whether the bindings keep the order of each key through retry topics. */
export const isPerKey = ({ bindings }: Pick<Scenario, "bindings">): boolean =>
  bindings.some(({ perKey }) => perKey !== undefined)

export const planOf = ({ bindings }: Scenario, binding: string): BindingPlan => {
  const plan = bindings.find((candidate) => candidate.name === binding)
  if (plan === undefined) throw new Error(`There is no binding '${binding}' in this scenario.`)
  return plan
}
