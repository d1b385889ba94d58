/**
 * Everything that happens in a run, in order: the steps of the broker, the connectors, the handlers, the operators and the machines. Rules read it,
 * reports quote it, and equal seeds give equal histories.
 */
import type { EventBusEvent, Replay } from "@eventbus/core"
import type { MemoryBroker } from "@eventbus/testkit"
import { Fiber } from "effect"
import type { OrderingMode, RecordPlan } from "../scenario/Scenario.ts"
import type { Copy } from "./copies.ts"
import type { Reading } from "./figures.ts"

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
  | { readonly _tag: "ProcessStarted"; readonly process: string; readonly orderingMode: OrderingMode }
  | { readonly _tag: "ProcessStopping" | "ProcessStopped" | "ProcessKilled"; readonly process: string }
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
      /** The ids of the records, in the same order. */
      readonly ids: ReadonlyArray<string>
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
  /** A replay begins to publish a copy of a dead letter. */
  | { readonly _tag: "Replayed"; readonly process: string; readonly number: number; readonly copy: Copy }
  /** An operator's replay is over; undefined when it failed. */
  | {
      readonly _tag: "ReplayEnded"
      readonly process: string
      readonly binding: string
      readonly order: string
      readonly replayed: number | undefined
    }
  /** An operator gives dead letters up. They are named by `partition@offset`. */
  | {
      readonly _tag: "Discarded"
      readonly process: string
      readonly binding: string
      readonly letters: ReadonlyArray<string>
      /** How many the command says that it gave up; undefined while it has not answered. */
      readonly discarded: number | undefined
    }
  /** An operator has decided about a held key, named by `topic/partition@offset`. */
  | {
      readonly _tag: "KeyDecided"
      readonly process: string
      readonly binding: string
      readonly verb: "retry" | "skip"
      readonly at: string
      /** Whether this process owns the key, or has left the decision to its owner; undefined when the command failed. */
      readonly by: string | undefined
    }
  /** The handler of a binding's dead letter strategy got a dead letter. */
  | {
      readonly _tag: "LetterHandled"
      readonly process: string
      readonly binding: string
      readonly partition: PartitionName
      readonly offset: bigint
    }
  /** The publish ended without an acknowledgement. */
  | { readonly _tag: "SendFailed"; readonly process: string; readonly number: number }
  /** A partition of a retry or dead letter topic holds new copies. */
  | { readonly _tag: "Stored"; readonly partition: PartitionName; readonly copies: ReadonlyArray<StoredCopy> }
  /** A partition of a retry topic holds new locks and claims of order per key. */
  | { readonly _tag: "Locked"; readonly partition: PartitionName; readonly locks: ReadonlyArray<StoredLock> }
  | { readonly _tag: "Broker"; readonly entry: MemoryBroker.JournalEntry }
  | { readonly _tag: "Connector"; readonly process: string; readonly event: EventBusEvent.EventBusEvent }
  /** The records that a reader of committed records sees in the output of a transactional binding, by id. */
  | { readonly _tag: "Observed"; readonly binding: string; readonly outputs: ReadonlyArray<Output> }
  /** Somebody reads all figures of a process. */
  | ({ readonly _tag: "Read"; readonly process: string } & Reading)
  /** A topic is gone, with its records and the offsets that groups had committed. */
  | { readonly _tag: "Removed"; readonly topic: string; readonly isMain: boolean }
  | { readonly _tag: "Made"; readonly topic: string }
  /** The last fault is over. From here on everything must settle. */
  | { readonly _tag: "FaultsOver" }
  /** Every process is stopped. */
  | { readonly _tag: "Ended"; readonly remains: Remains }
  /** The broker is closed, too. No fiber may be left. */
  | { readonly _tag: "Closed"; readonly fibers: number }

export interface StoredCopy {
  readonly offset: bigint
  readonly copy: Copy
  /** False when its transaction was aborted, so that nobody reads it. Known at the end of the run. */
  isReadable: boolean
  /** It was readable before records were deleted. */
  wasReadable: boolean
  /** A replay published it. */
  readonly isReplay: boolean
}

/** A lock or a claim of order per key, read by its headers. */
export interface StoredLock {
  readonly at: bigint
  readonly kind: string
  /** The group that it is bound to. */
  readonly groupId: string
  /** Null for a claim. */
  readonly key: string | null
  /** Everything of the key below this offset of the main topic is done. */
  readonly offset: bigint
  readonly hop: number
  readonly epoch: number
  /** Where the first follower can be. */
  readonly next: bigint
}

/** A dead letter as an operator sees it. */
export interface LetterState {
  /** Its place: `partition@offset`. */
  readonly at: string
  readonly id: string
  readonly replays: number
  readonly state: Replay.ListedDeadLetter["state"]
}

/** A committed record in the output topic of a transactional binding. */
export interface Output {
  readonly partition: number
  readonly id: string
}

/** The state at the end, when everything had time to settle. */
export interface Remains {
  /** A sentence for each group, from before the processes stopped. */
  readonly groups: ReadonlyArray<string>
  /** Time at which the topics were checked for unread records. */
  readonly readMillis: number
  /** Partitions whose committed offset is not the log end. */
  readonly lagging: ReadonlyArray<{
    readonly partition: PartitionName
    readonly committed: bigint | undefined
    readonly logEnd: bigint
  }>
  /** The records of dead letter topics: the value as text, the number of replays before, and the group that the mark names. */
  readonly deadLetters: ReadonlyArray<{
    readonly value: string
    readonly replays: number
    readonly owner: string | undefined
  }>
  /** The dead letters of each binding as an operator sees them, where they could be read. */
  readonly letters: ReadonlyMap<string, ReadonlyArray<LetterState>>
  /** The committed records that transactional handlers published, with their bindings. */
  readonly outputs: ReadonlyArray<Output & { readonly binding: string }>
  /** Sentences about a stop that did not end, and about leftovers. */
  readonly leftovers: ReadonlyArray<string>
}

export type Entry = Fact & {
  readonly atMillis: number
  /** The fiber of the step. Two consecutive steps of one fiber may be cause and effect. */
  readonly fiber: number | undefined
}

/** The process of a fact. Facts of a killed process are not recorded. */
const processOf = (fact: Fact): string | undefined => ("process" in fact ? fact.process : undefined)

export class History {
  readonly entries: Array<Entry> = []
  private readonly killed = new Set<string>()
  /** Milliseconds since the run began. */
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
