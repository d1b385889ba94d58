/**
 * Everything that happened in a run, in order: what the broker, the connectors, the handlers, the operators and the machines did. Rules read it, stories
 * quote it, and equal seeds give equal ones.
 */
import type { EventBusEvent } from "@eventbus/core"
import type { MemoryBroker } from "@eventbus/testkit"
import { Fiber } from "effect"
import type { Copy } from "./copies.ts"
import type { RecordPlan } from "./Scenario.ts"

/** A partition of a topic, as text: `orders/0`. */
export type PartitionName = string

export type Fact =
  | {
      readonly _tag: "Published"
      readonly binding: string
      readonly partition: PartitionName
      readonly firstOffset: bigint
      readonly records: ReadonlyArray<RecordPlan>
    }
  | { readonly _tag: "LogEnd"; readonly partition: PartitionName; readonly logEnd: bigint; readonly why: string }
  | { readonly _tag: "Compacted"; readonly partition: PartitionName; readonly offsets: ReadonlyArray<bigint> }
  | { readonly _tag: "Truncated"; readonly partition: PartitionName; readonly before: bigint }
  | {
      readonly _tag: "ProcessStarted" | "ProcessStopping" | "ProcessStopped" | "ProcessKilled"
      readonly process: string
    }
  /** The operator's command has returned. */
  | { readonly _tag: "Paused" | "Resumed"; readonly process: string; readonly binding: string }
  | {
      readonly _tag: "Called"
      readonly process: string
      readonly binding: string
      readonly consumer: number
      readonly call: number
      readonly partition: PartitionName
      readonly offsets: ReadonlyArray<bigint>
    }
  | {
      readonly _tag: "Returned"
      readonly call: number
      readonly process: string
      readonly outcome: "done" | "failed" | "interrupted"
      /** The records that the handler finished: all, or those that its BatchProcessing error calls done. */
      readonly done: ReadonlyArray<bigint>
    }
  | {
      readonly _tag: "CommitSent" | "CommitAccepted" | "CommitFailed"
      readonly process: string
      readonly groupId: string
    }
  /** A process begins to publish a copy to a retry or dead letter topic. */
  | { readonly _tag: "Sent"; readonly process: string; readonly number: number; readonly copy: Copy }
  /** The sending did not end with an acknowledgement. */
  | { readonly _tag: "SendFailed"; readonly process: string; readonly number: number }
  /** Copies lie in a partition of a retry or dead letter topic. */
  | { readonly _tag: "Stored"; readonly partition: PartitionName; readonly copies: ReadonlyArray<StoredCopy> }
  | { readonly _tag: "Broker"; readonly entry: MemoryBroker.JournalEntry }
  | { readonly _tag: "Connector"; readonly process: string; readonly event: EventBusEvent.EventBusEvent }
  /** The last fault is over; from here everything must come to rest. */
  | { readonly _tag: "TroubleOver" }
  /** Everything is stopped. */
  | { readonly _tag: "Ended"; readonly remains: Remains }
  /** The broker is gone too; fibers that run on belong to nobody. */
  | { readonly _tag: "Closed"; readonly fibers: number }

export interface StoredCopy {
  readonly offset: bigint
  readonly copy: Copy
  /** False when its transaction was aborted: nobody ever reads it. Known at the end of the run. */
  isReadable: boolean
}

/** The state at the end, when everything had time to settle. */
export interface Remains {
  /** The groups as they were before everything was stopped: sentences. */
  readonly groups: ReadonlyArray<string>
  /** When the topics were looked at for what is not read yet. */
  readonly readMillis: number
  /** Partitions whose committed offset is not the end of the log. */
  readonly lagging: ReadonlyArray<{
    readonly partition: PartitionName
    readonly committed: bigint | undefined
    readonly logEnd: bigint
  }>
  /** Values in dead letter topics, as text. */
  readonly deadLetters: ReadonlyArray<string>
  /** Ids of the committed records that transactional handlers published. */
  readonly outputs: ReadonlyArray<string>
  /** Why a stop did not end, and what was left over: sentences. */
  readonly leftovers: ReadonlyArray<string>
}

export type Entry = Fact & {
  readonly atMillis: number
  /** The fiber that did it: two things that one fiber does, one right after the other, may be cause and effect. */
  readonly fiber: number | undefined
}

/** Of a process and what it runs: what a killed process still believes is not history. */
const processOf = (fact: Fact): string | undefined => ("process" in fact ? fact.process : undefined)

export class History {
  readonly entries: Array<Entry> = []
  private readonly killed = new Set<string>()
  /** Since the run began. */
  readonly nowMillis: () => number

  constructor(nowMillis: () => number) {
    this.nowMillis = nowMillis
  }

  add(fact: Fact): void {
    const process = processOf(fact)
    if (process !== undefined && this.killed.has(process)) return
    this.entries.push({ ...fact, atMillis: this.nowMillis(), fiber: Fiber.getCurrent()?.id })
    if (fact._tag === "ProcessKilled") this.killed.add(fact.process)
  }

  isKilled(process: string): boolean {
    return this.killed.has(process)
  }
}
