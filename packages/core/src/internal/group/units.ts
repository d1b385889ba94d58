/**
 * Units of a consumer (`orderingMode: "PER_KEY"`): a source partition and the same partition of each of its retry topics.
 *
 * A partition joins its unit when it is opened. Once all parts are here, the unit begins; until then each of them is paused for reason `order`, and nothing of it is handled. When
 * one part ends, the unit has ended, and the others wait for a new one.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker, ConsumerOptions, ConsumerSession } from "../../Broker.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import * as Clocks from "../base/clocks.ts"
import { retryTimes } from "../checks/planTimes.ts"
import { type ConsumerContext, report, reportPublishFailed } from "../delivery/consumerContext.ts"
import { strandedLetter } from "../delivery/drain/strandedLetter.ts"
import type { UnitCounts } from "../observe/orderMetrics.ts"
import { begin } from "../order/begin.ts"
import { ParkedRoom } from "../order/parkedRoom.ts"
import type { Unit } from "../order/unit.ts"
import type { Bodies } from "../order/unitOptions.ts"
import * as CommitMetadata from "../partition/commitMetadata.ts"
import type { Partition } from "../partition/partition.ts"
import * as AssignmentStrategy from "../port/assignmentStrategy.ts"
import { budgetMillis } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Sources from "../settings/sources.ts"
import * as BeyondSource from "./beyondSource.ts"
import * as Retentions from "./retentions.ts"
import { UnitParts } from "./unitParts.ts"

export interface UnitsOptions {
  readonly context: ConsumerContext<unknown>
  readonly broker: Broker["Service"]
  readonly session: Pick<ConsumerSession, "clusterId">
  readonly counts: UnitCounts
}

/** All units of one consumer share them. */
interface Shared {
  readonly bodies: Bodies
  readonly parkedRoom: ParkedRoom
}

/** Whether a binding can have units: its retry topics are read with their source, by one member, and become due in the order of their offsets. */
export const areKept = ({
  handler,
  listenerType,
  processingOrder,
  retry,
  tiers,
  groupProtocol,
  partitionAssignmentStrategy
}: ConsumerContext<unknown>["definition"]): boolean =>
  handler._tag === "PerRecord" &&
  listenerType === "SINGLE" &&
  processingOrder !== "unordered" &&
  retry.consumer === "shared" &&
  groupProtocol === "classic" &&
  AssignmentStrategy.foreign(partitionAssignmentStrategy).length === 0 &&
  tiers.count > 0 &&
  tiers.topics.every(({ delaysMillis }) => delaysMillis.length === 1)

/** The topics of each source that go together, as a consumer announces them to its group. */
export const announced = (
  definition: ConsumerContext<unknown>["definition"]
): Pick<ConsumerOptions, "copartitionedTopics"> =>
  areKept(definition)
    ? { copartitionedTopics: Sources.topicsOf(definition).map((source) => topicsOf(definition, source)) }
    : {}

export interface Units {
  /** Whether the partition runs within a unit. Where the binding does not ask for that, it does while keys are parked that were parked before. */
  readonly needs: (at: TopicPartition) => boolean
  /** A commit in this source says that keys may be parked. */
  readonly require: (at: TopicPartition) => void
  /** The partition is assigned: where it is one of a source that has grown, the same partition of its retry topics needs a unit from now on. */
  readonly expect: (at: TopicPartition) => void
  /** Waits until the unit of the partition runs, or is not needed. */
  readonly join: (partition: Partition) => Effect.Effect<void>
  /** The partition ends. Answers the other parts of its unit where it had begun: they end with it. */
  readonly leave: (partition: Partition) => ReadonlyArray<Partition>
  /** The parts of the same unit, itself included. */
  readonly partsOf: (partition: Partition) => ReadonlyArray<Partition>
  /** All units that run. */
  readonly running: () => ReadonlyArray<Unit>
  /** The unit that the partition is a part of; undefined while it does not run. */
  readonly of: (partition: Partition) => Unit | undefined
}

/** Undefined for a binding that can have no units. */
export const ofConsumer = (options: UnitsOptions): Effect.Effect<Units | undefined, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { context, broker } = options
    const { definition, consumer, hub } = context
    if (!areKept(definition)) return undefined
    const retentions = Retentions.make(broker, scope, (topic, error) =>
      hub.emit({ _tag: "RetentionUnknown", ...BindingKey.onEvent(definition), consumer, topic, error })
    )
    return make(options, retentions)
  })

/** The parts fetch, in a unit or by themselves. */
const goOn = (seat: UnitParts, unit: Unit | undefined): Effect.Effect<void> =>
  Effect.suspend(() => {
    seat.release(unit)
    const fetched = Effect.forEach(seat.parts.values(), (partition) => partition.syncFetch, { discard: true })
    return Effect.andThen(
      fetched,
      Effect.sync(() => seat.isReady())
    )
  })

const make = (options: UnitsOptions, retentions: Retentions.Retentions): Units => {
  const { context, broker, counts } = options
  const { definition } = context
  const seats = new Map<string, UnitParts>()
  const isAsked = definition.orderingMode === "PER_KEY"
  /** Units of a binding that does not ask for them. */
  const required = new Set<string>()
  /** Units whose source has no such partition: their parts run by themselves. */
  const beyond = new Set<string>()
  const { maxParkedBytes, maxParkedKeys } = definition.perKey
  const shared: Shared = { bodies: { bytes: 0, most: maxParkedBytes }, parkedRoom: new ParkedRoom(maxParkedKeys) }

  const keyOf = ({ topic, partition }: TopicPartition): string =>
    partitionKey(Sources.ofTopic(definition, topic).topic, partition)

  const seatOf = (partition: Partition): UnitParts | undefined => {
    const seat = seats.get(keyOf(partition))
    return seat?.parts.get(partition.topic) === partition ? seat : undefined
  }

  const take = (partition: Partition): UnitParts => {
    const key = keyOf(partition)
    const source = Sources.ofTopic(definition, partition.topic).topic
    const known = seats.get(key)
    // A unit that has begun takes no new part: the other parts come again, too.
    const seat = known === undefined || known.hasBegun ? new UnitParts(key, source, partition.partition) : known
    seats.set(key, seat)
    seat.parts.set(partition.topic, partition)
    return seat
  }

  /** The parts go on without a unit. */
  const release = Effect.fnUntraced(function* (seat: UnitParts) {
    beyond.add(seat.key)
    if (seats.get(seat.key) === seat) seats.delete(seat.key)
    yield* goOn(seat, undefined)
  })

  const run = Effect.fnUntraced(function* (seat: UnitParts, missing: ReadonlyArray<string>) {
    if (missing.length > 0) return
    seat.hasBegun = true
    const elapsedMillis = Clocks.stopwatch(context.clock)
    const unit = yield* beginUnit(options, seat, { ...shared, retentions })
    counts.begun.observe(elapsedMillis())
    const isNeeded = isAsked || unit.table.size > 0
    if (!isNeeded) {
      // No key is parked, and none will be: the partitions go on by themselves.
      required.delete(seat.key)
      seats.delete(seat.key)
    }
    yield* goOn(seat, isNeeded ? unit : undefined)
  })

  return {
    needs: (at) => (isAsked && !beyond.has(keyOf(at))) || required.has(keyOf(at)),
    require: (at) => void required.add(keyOf(at)),
    expect: (at) => {
      if (Sources.tierOf(definition, at.topic) === undefined) beyond.delete(keyOf(at))
    },
    join: (partition) =>
      Effect.suspend(() => {
        const seat = take(partition)
        const missing = topicsOf(definition, seat.source).filter((topic) => !seat.parts.has(topic))
        seat.waitsFor(missing, context.clock.currentTimeMillisUnsafe())
        const alone = Effect.flatMap(BeyondSource.isFound(broker, seat), () => release(seat))
        return Effect.andThen(run(seat, missing), Effect.raceFirst(seat.ready, alone))
      }),
    leave: (partition) => {
      const seat = seatOf(partition)
      if (seat === undefined) return []
      seat.parts.delete(partition.topic)
      if (!seat.hasBegun) return []
      seats.delete(keyOf(partition))
      seat.unit?.table.end()
      return Array.from(seat.parts.values())
    },
    partsOf: (partition) => Array.from(seatOf(partition)?.parts.values() ?? [partition]),
    running: () => Array.from(seats.values()).flatMap(({ unit }) => unit ?? []),
    of: (partition) => seatOf(partition)?.unit
  }
}

const topicsOf = (definition: ConsumerContext<unknown>["definition"], source: string): ReadonlyArray<string> => [
  source,
  ...Sources.ofTopic(definition, source).tiers.topics.map(({ topic }) => topic)
]

/** All delays of a record that always fails. */
const delaysOf = (definition: ConsumerContext<unknown>["definition"]): number =>
  retryTimes(definition.topic, definition.retry, definition.tiers, budgetMillis(definition)).exhausted.latestMillis

const beginUnit = (
  { context, broker, session, counts }: UnitsOptions,
  seat: UnitParts,
  { retentions, ...shared }: Shared & { readonly retentions: Retentions.Retentions }
): Effect.Effect<Unit> => {
  const definition = Sources.ofTopic(context.definition, seat.source)
  const main = seat.parts.get(seat.source)!
  const tiers = definition.tiers.topics.map(({ topic }) => seat.parts.get(topic)!)
  const { topic, partition, generation } = main
  const topicId = CommitMetadata.topicIdOf(main.commitText.fixed)
  return begin({
    ...{ ...shared, definition, main, tiers, broker, generation, counts },
    letterOf: (at, { record, lock }) => strandedLetter(context, at, record, lock),
    ...{ retention: () => retentions.of(topic), delaysMillis: delaysOf(definition) },
    askRetention: (withinMillis) => retentions.ask(topic, withinMillis),
    parks: definition.orderingMode === "PER_KEY",
    ...{ clock: context.clock, committer: context.committer, copyPublisher: context.copyPublisher },
    bond: {
      ...{ topic, partition, topicId, clusterId: session.clusterId },
      ...{ groupId: definition.groupId, formerGroupIds: definition.adopts }
    },
    onHeldGone: ({ keyBytes: key, offset }) =>
      report(context, main, {
        ...{ _tag: "RecordsGone", from: offset, to: offset + 1n, gone: 1n, cause: "retention" },
        ...{ behind: [{ key, offset }], keys: 1 }
      }),
    onRefused: (record, target, error, attempt) =>
      reportPublishFailed(context, main, record, { topic: target, isDeadLetter: false }, error, attempt),
    onLocksGone: (gone) => report(context, main, { _tag: "LocksGone", ...gone, to: main.position() }),
    onProblem: (problem) => seat.failed(problem) && report(context, main, { _tag: "UnitWaits", problem })
  })
}
