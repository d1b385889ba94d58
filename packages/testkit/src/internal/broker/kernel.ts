/**
 * The parts that everything in an in-memory cluster shares: time, random numbers, timers, topics and the journal.
 */
import type { ConsumerRecord } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import type * as FaultPlan from "../../FaultPlan.ts"
import { make as makeRandom, type SeededRandom } from "./seededRandom.ts"
import { TopicRegistry } from "./topicRegistry.ts"

/** One step of a run, for comparing runs and for reading a failed one. */
export type JournalEntry =
  | {
      readonly _tag: "Appended"
      readonly clientId: string
      readonly topic: string
      readonly partition: number
      readonly firstOffset: bigint
      readonly records: number
    }
  | { readonly _tag: "Joined" | "Left" | "Expired" | "Fenced"; readonly groupId: string; readonly memberId: string }
  | {
      readonly _tag: "Assigned" | "Revoked" | "Lost" | "Released"
      readonly groupId: string
      readonly memberId: string
      readonly generation: number
      readonly partitions: ReadonlyArray<string>
    }
  | {
      readonly _tag: "Committed"
      readonly groupId: string
      readonly memberId: string
      readonly generation: number
      readonly offsets: ReadonlyArray<
        ConsumerRecord.TopicPartition & { readonly offset: bigint; readonly metadata: string }
      >
    }
  | { readonly _tag: "FaultInjected"; readonly effect: FaultPlan.ClusterEffect["_tag"] }

/** Receives every step with its time in epoch milliseconds. */
export type Journal = (entry: JournalEntry, atMillis: number) => void

/** The behaviour of a cluster. Each number is in the unit at the end of its name. */
export interface Settings {
  readonly defaultPartitions: number
  readonly brokerCount: number
  readonly autoCreateTopics: "off" | "on"
  readonly assignment: "cooperative-sticky" | "eager"
  readonly maxRecordsPerChunk: number
  readonly requestTimeoutMillis: number
  readonly latencyMillis: Readonly<Record<FaultPlan.Operation, number>>
  readonly topicDefaults: ReadonlyMap<string, string>
}

export interface Kernel {
  readonly clusterId: string
  readonly settings: Settings
  readonly random: SeededRandom
  readonly topics: TopicRegistry
  readonly nowMillis: () => number
  /** Runs something later. The returned function cancels it. */
  readonly after: (delayMillis: number, run: () => void) => () => void
  readonly timers: Effect.Effect<number>
  readonly journal: (entry: JournalEntry) => void
}

let clusters = 0

/** As long as Kafka's, whatever the number, so that equal seeds give records of equal size. */
const nextClusterId = (): string => `memory-${String(++clusters).padStart(15, "0")}`

export const make = Effect.fnUntraced(function* (
  settings: Settings,
  seed: number,
  onEvent: Journal | undefined
): Effect.fn.Return<Kernel, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const timers = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(timers)()
  return {
    clusterId: nextClusterId(),
    settings,
    random: makeRandom(seed),
    topics: new TopicRegistry(settings.topicDefaults),
    nowMillis: () => clock.currentTimeMillisUnsafe(),
    after: (delayMillis, run) => {
      const fiber = fork(Effect.delay(Effect.sync(run), delayMillis))
      return () => fiber.interruptUnsafe()
    },
    timers: FiberSet.size(timers),
    journal: onEvent ? (entry) => onEvent(entry, clock.currentTimeMillisUnsafe()) : () => {}
  }
})
