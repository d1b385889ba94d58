/**
 * The parts of a unit: a partition of a source, the same partition of each of its retry topics, and the parts of its consumer.
 */
import type * as Clock from "effect/Clock"
import type * as Effect from "effect/Effect"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { UnitCounts } from "../observe/orderMetrics.ts"
import type { Committer } from "../partition/committer.ts"
import type { Partition } from "../partition/partition.ts"
import type { CopyPublisher } from "../publish/copyPublisher.ts"
import type * as OrderHeaders from "../record/orderHeaders.ts"
import type { SourceRetention } from "../retry/sourceRetention.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import type { Entry } from "./entry.ts"
import type { ParkedRoom } from "./parkedRoom.ts"

/** The bodies of followers that all units of a consumer hold in memory, in bytes. */
export interface Bodies {
  bytes: number
  readonly most: number
}

export interface UnitOptions {
  /** The binding as it reads this source. */
  readonly definition: BindingDefinition<unknown>
  readonly main: Partition
  /** In the order of the binding's retry topics. */
  readonly tiers: ReadonlyArray<Partition>
  readonly bond: OrderHeaders.Bond
  readonly epoch: number
  /** By retry topic: strangers below this offset were dealt with when the unit began. */
  readonly strangersTo: ReadonlyArray<bigint>
  /** False where the binding does not keep the order of each key (any more): keys that are parked go on in order, and no other is parked. */
  readonly parks: boolean
  readonly clock: Clock.Clock
  /** Milliseconds since the unit began, also where somebody sets the wall clock. */
  readonly elapsedMillis: () => number
  readonly broker: Broker["Service"]
  readonly committer: Committer
  readonly copyPublisher: CopyPublisher
  readonly bodies: Bodies
  readonly parkedRoom: ParkedRoom
  /** How long the source keeps its records, as it was found last; undefined while that is not known. */
  readonly retention: () => SourceRetention | undefined
  /** Asks the cluster for that, unless it was asked within so many milliseconds. */
  readonly askRetention: (withinMillis: number) => Effect.Effect<void>
  /** All delays of a record that always fails, in milliseconds. */
  readonly delaysMillis: number
  readonly counts: UnitCounts
  /** Nobody has the record of a held key any more. */
  readonly onHeldGone: (entry: Entry) => void
  /** A lock was refused. It is published again. */
  readonly onRefused: (record: ConsumerRecord, topic: string, error: BrokerError, attempt: number) => void
}
