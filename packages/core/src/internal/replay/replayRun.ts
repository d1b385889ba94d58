/**
 * The state of a run of a replay, which its parts share: the settings, the selected records, and the progress.
 */
import type * as Effect from "effect/Effect"
import type { Admin, Broker, TransactionalProducer, UnreadableBatch } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import {
  type ConsumerRecord,
  type ProducerRecord,
  partitionKey,
  type RecordMetadata,
  type RecordPosition
} from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type { Discarded } from "../../Replay.ts"
import type * as CopyOwner from "../record/copyOwner.ts"
import type { Tiers } from "../retry/tiers.ts"
import type * as ReplayProgress from "./replayProgress.ts"

/** The groups are the binding's own, and those that it adopts. */
export interface Options extends CopyOwner.Groups {
  readonly broker: Broker["Service"]
  /** The main topic of the binding. Records whose headers name no origin go there. */
  readonly sourceTopic: string
  readonly deadLetterTopic: string
  readonly maxBufferedBytes: number
  readonly tiers: Pick<Tiers, "count" | "topicOf" | "ofTopic">
  /** Further topics that copies go to, beside the main topic: those that dead letters came from. Default: none. */
  readonly origins?: ReadonlyArray<string> | undefined
  /** A record that was replayed this often is passed over, unless the run sets another limit. */
  readonly maxReplays: number
  /** False when a custom handler consumes the topic: the offset of group `{groupId}.dlt` belongs to that handler, and only the journal tells what was replayed. */
  readonly ownsPosition: boolean
  /** The name of this host, for replays that wait for this one. */
  readonly hostname: string
}

/** The records that a run selects. */
export interface Selection {
  /** How many records the run selects at most. */
  readonly count: number
  /** Decides about each record: replay it, leave it, or stop with this partition. */
  readonly select: (letter: DeadLetterRecord) => "take" | "leave" | "stop"
  /** Whether the run would have come to records of a batch that cannot be read. Default: of every one. */
  readonly concerns?: (batch: UnreadableBatch) => boolean
  /** True when the run takes every record up to the last selected one, so that the position may move. */
  readonly inOrder: boolean
  /** The retry tier that copies go to. Default: the topic that the record came from. */
  readonly tier?: number
  /** Set when the records are discarded, with the reason. No copies are published then. */
  readonly discardedBecause?: string
  /** The one who discards them, where that is known. */
  readonly discardedBy?: string
  /** Set when the records were discarded, and wait again. No copies are published then. */
  readonly restores?: Restores
  /** The index of the partition that is read first. Default 0. */
  readonly first?: number
  /** The limit of this run instead of the binding's. */
  readonly maxReplays?: number
  /** True when the run also takes records that a custom handler has handled. Default: it takes what waits. */
  readonly takesHandled?: boolean
  /** True when the run does not come back to records that an earlier run passed over. Default: it reports them again. */
  readonly passesOverOnce?: boolean
  /** Set when the run is that of a plan (`internal/runs`). */
  readonly planned?: Planned
}

/** How records that were given up come back. */
export interface Restores {
  /** By partition and offset. */
  readonly discarded: ReadonlyMap<string, Discarded>
  readonly reason: string
  readonly by: string
}

/** Whether the run publishes anything. */
export const makesCopies = ({ discardedBecause, restores }: Selection): boolean =>
  discardedBecause === undefined && restores === undefined

/** The part of a run of a plan in a replay. */
export interface Planned {
  /** Copies name the run. */
  readonly runId: string
  /** Makes a dead letter ready to be copied. A text says why it stays. Default: it is copied as it is. */
  readonly prepare?: (letter: DeadLetterRecord) => Effect.Effect<DeadLetterRecord | string>
  /** The most records of the next transaction, 1 or more. */
  readonly most: () => number
  /** Waits until the next transaction may begin. Fails when none may. */
  readonly ready: Effect.Effect<void, RunHalted | BrokerError>
  /** Fails once an operator has paused or cancelled the run. Asks at most once a second. */
  readonly glance: Effect.Effect<void, RunHalted | BrokerError>
  /** Does work that may take long, and ends it as soon as an operator pauses or cancels the run, also in its last moment. */
  readonly watched: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E | RunHalted | BrokerError>
  /** The entries that a transaction with these copies writes beside those of the replay. `taken` is how many records it deals with. */
  readonly entries: (copied: ReadonlyArray<Copied>, taken: number) => Effect.Effect<ReadonlyArray<ProducerRecord>>
  /** Called once a transaction is committed. */
  readonly committed: Effect.Effect<void>
  /** The entries of the beginning, written once nobody else can publish for the run. */
  readonly begun: Effect.Effect<ReadonlyArray<ProducerRecord>>
  /** Called once the beginning is written. */
  readonly hasBegun: Effect.Effect<void>
  /** The entries of the end. */
  readonly over: (halted: RunHalted | undefined) => Effect.Effect<ReadonlyArray<ProducerRecord>>
}

/** A copy of a dead letter. */
export interface Copy {
  /** The dead letter. */
  readonly record: ConsumerRecord
  readonly copy: ProducerRecord
}

/** A copy that the broker has acknowledged. */
export interface Copied extends Copy {
  readonly stored: RecordMetadata
}

/** The progress of a run. */
export interface RunState {
  replayed: number
  passedOver: number
  /** Offsets of batches that could not be read. */
  unreadable: number
  /** Dead letters of other groups, by group. */
  readonly foreign: Map<string, number>
  /** Records below these offsets have been counted, by partition: a run that starts again counts no record twice. */
  readonly countedTo: Map<number, bigint>
  /** Why records cannot be published where they came from, by their keys. */
  readonly refused: Map<string, string>
  /** Learned from refusals, so that the run does not pay for each one again. */
  readonly known: Known
  /** Batches that cannot be read and have had their warning, by topic, partition and offset. */
  readonly warned: Set<string>
}

/** Most records of one transaction. */
export const batchRecords = 100

/** The knowledge of a run about its targets. */
export interface Known {
  /** Topics that take no copy at all, and why. */
  readonly closedTopics: Map<string, string>
  /** By topic: the size of the smallest record that was too large for it, in bytes of key and value. */
  readonly tooLarge: Map<string, number>
  /** By topic: the largest batch that it takes, in bytes; undefined where the cluster does not say. */
  readonly limits: Map<string, number | undefined>
  /** Keys of records whose copies the broker took in a trial. */
  readonly tried: Set<string>
}

export interface Run {
  readonly options: Options
  readonly selection: Selection
  readonly state: RunState
  readonly progress: ReplayProgress.ReplayProgress
  /** Undefined while the run has no lease: it only looks then. */
  readonly producer: TransactionalProducer | undefined
  readonly admin: Admin
  /** Partition counts of the target topics, by topic. */
  readonly partitionCounts: Map<string, number>
}

/** The run has come to something that it has to write, and has no lease yet. */
export class LeaseNeeded {
  readonly _tag = "LeaseNeeded"
}

/** The run of a plan does not go on. */
export class RunHalted {
  readonly _tag = "RunHalted"
  readonly state: "paused" | "stopped" | "cancelled"
  readonly reason: string

  constructor(state: RunHalted["state"], reason: string) {
    this.state = state
    this.reason = reason
  }
}

/** A copy that the broker refused. */
export interface Refusal {
  readonly record: ConsumerRecord
  readonly error: BrokerError
}

/** The broker refused copies of one transaction. */
export class CopyRefused {
  /** One or more. */
  readonly refusals: ReadonlyArray<Refusal>

  constructor(refusals: ReadonlyArray<Refusal>) {
    this.refusals = refusals
  }
}

export const keyOf = ({ topic, partition, offset }: RecordPosition): string =>
  `${partitionKey(topic, partition)}/${offset}`
