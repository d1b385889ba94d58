/**
 * The questions that a `TestBus` answers about records: their paths, and which of them are not done.
 */
import { type Binding, type ConsumerRecord, DeadLetterRecord, type EventBusConnector } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { NotSettled } from "../../NotSettled.ts"
import type { ClockDriver } from "../target/clockDriver.ts"
import * as TestRecord from "../target/testRecord.ts"
import * as DeliverySteps from "./deliverySteps.ts"
import { isCopyOf, type Position } from "./eventRecorder.ts"
import * as Sources from "./sources.ts"
import * as Stuck from "./stuck.ts"
import * as TrailText from "./trailText.ts"

type Bindings = ReadonlyArray<Binding.Binding<unknown>>

/** Selects records of a topic: all with a key (text, bytes, or a value of the binding's key serde), or one by partition and offset. */
export type RecordRef =
  | string
  | Uint8Array
  | { readonly key: unknown }
  | { readonly partition: number; readonly offset: bigint | number }

/** Succeeds when everything is consumed and committed; fails with the reasons otherwise. */
export const settled = Effect.fnUntraced(function* (
  bus: Stuck.BusState,
  clockDriver: ClockDriver,
  bindings: Bindings,
  snapshots: EventBusConnector.EventBusConnector["Service"]["listBindings"]
) {
  const through = Effect.map(
    Effect.forEach(bindings, ({ definition }) => Stuck.isCaughtUp(bus, definition)),
    (each) => each.every((isThrough) => isThrough)
  )
  if (yield* clockDriver.waitUntil(through)) return
  const current = yield* snapshots
  const stuck = yield* Effect.forEach(bindings, ({ name, definition }) =>
    Stuck.find(
      bus,
      definition,
      current.find((snapshot) => snapshot.name === name)
    )
  )
  const found = stuck.flat().map(({ record, ...rest }) => {
    const { topic, partition, offset, key } = record
    return { ...rest, topic, partition, offset, key: TestRecord.show(key) }
  })
  if (found.length > 0) return yield* new NotSettled({ at: TrailText.durationText(bus.nowMillis()), stuck: found })
})

/** The records of a topic that a reference selects; dies with a list of all records when there is none. */
const findRecords = Effect.fnUntraced(function* (
  { cluster }: Stuck.BusState,
  bindings: Bindings,
  topic: string,
  ref: RecordRef
): Effect.fn.Return<ReadonlyArray<ConsumerRecord.ConsumerRecord>> {
  const records = yield* cluster.records(topic)
  const reader = bindings.find(({ definition }) => Sources.reads(definition, topic))
  const matches = yield* matcher(ref, reader)
  const found = records.filter(matches)
  if (found.length > 0) return found
  const there = records.map((record) => `${TrailText.positionText(record)} (key ${TestRecord.show(record.key)})`)
  return yield* Effect.die(
    new Error(`No record of topic '${topic}' is that. There are: ${there.length === 0 ? "none" : there.join(", ")}`)
  )
})

const matcher = Effect.fnUntraced(function* (ref: RecordRef, reader: Binding.Binding<unknown> | undefined) {
  if (typeof ref === "object" && "offset" in ref && "partition" in ref) {
    const { partition, offset } = ref
    return (record: ConsumerRecord.ConsumerRecord) => record.partition === partition && record.offset === BigInt(offset)
  }
  const given = typeof ref === "object" && "key" in ref ? ref.key : ref
  const key = yield* Effect.orDie(TestRecord.toBytes(given, reader?.definition.serdes.key))
  return (record: ConsumerRecord.ConsumerRecord) => sameBytes(record.key, key)
})

const sameBytes = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
  a === null || b === null ? a === b : a.length === b.length && a.every((byte, index) => byte === b[index])

/** One block of text for each record and each binding that reads the topic. */
export const trail = Effect.fnUntraced(function* (
  bus: Stuck.BusState,
  bindings: Bindings,
  topic: string,
  ref: RecordRef
): Effect.fn.Return<string> {
  const readers = bindings.filter(({ definition }) => Sources.reads(definition, topic))
  const blocks: Array<string> = []
  for (const record of yield* findRecords(bus, bindings, topic, ref)) {
    if (readers.length === 0) blocks.push(`${TrailText.positionText(record)}  no binding reads ${topic}`)
    for (const { name, definition } of readers) {
      const steps = DeliverySteps.ofRecord(bus.recorder, definition, record)
      const letter = yield* deadLetterOf(bus, steps, record)
      const lines = TrailText.lines(steps, record.timestamp - bus.begunMillis, letter)
      const heading = readers.length > 1 ? [`${name}:`] : []
      blocks.push(
        [...heading, ...(lines.length > 0 ? lines : [`${TrailText.positionText(record)}  not delivered yet`])].join(
          "\n"
        )
      )
    }
  }
  return blocks.join("\n\n")
})

/** The reason in the dead letter of a record. */
const deadLetterOf = Effect.fnUntraced(function* (
  { cluster }: Stuck.BusState,
  steps: ReadonlyArray<DeliverySteps.DeliveryStep>,
  origin: Position
): Effect.fn.Return<string | undefined> {
  const target = steps.findLast(({ outcome }) => outcome === "DeadLettered")?.target
  if (target === undefined) return undefined
  const letters = yield* cluster.records(target)
  const letter = letters.findLast((record) => isCopyOf(record, origin))
  return letter === undefined ? undefined : DeadLetterRecord.read(letter).dltReason
})

/** The records in the dead letter topics of the bindings that read a topic. */
export const deadLetters = Effect.fnUntraced(function* (
  { cluster }: Stuck.BusState,
  bindings: Bindings,
  topic: string
): Effect.fn.Return<ReadonlyArray<DeadLetterRecord.DeadLetterRecord>> {
  const targets = new Set(
    bindings.flatMap(({ definition }) =>
      Sources.of(definition).flatMap((source) =>
        source.topic === topic || source.deadLetterTopic === topic ? [source.deadLetterTopic] : []
      )
    )
  )
  if (targets.size === 0) targets.add(topic)
  const records = yield* Effect.forEach(targets, cluster.records)
  return records.flat().map(DeadLetterRecord.read)
})

/** The deliveries of every selected record, record by record. */
export const deliverySteps = Effect.fnUntraced(function* (
  bus: Stuck.BusState,
  bindings: Bindings,
  topic: string,
  ref: RecordRef
): Effect.fn.Return<ReadonlyArray<DeliverySteps.DeliveryStep>> {
  const readers = bindings.filter(({ definition }) => Sources.reads(definition, topic))
  const records = yield* findRecords(bus, bindings, topic, ref)
  return records.flatMap((record) =>
    readers.flatMap(({ definition }) => DeliverySteps.ofRecord(bus.recorder, definition, record))
  )
})

/** A record that a handler has handled. */
export interface Handled {
  /** Name of the binding. */
  readonly binding: string
  /** The key, decoded by the binding's serde. */
  readonly key: unknown
  /** The value, decoded by the binding's serde. */
  readonly value: unknown
  /** The record as it was fetched from the main topic or a retry topic. */
  readonly record: ConsumerRecord.ConsumerRecord
  /** Milliseconds since the bus started. */
  readonly atMillis: number
}

/** The handled records in order, of one binding or of all. */
export const handled = (
  { recorder }: Stuck.BusState,
  bindings: Bindings,
  binding: string | undefined
): ReadonlyArray<Handled> =>
  recorder.of("Settled").flatMap(({ atMillis, event }) => {
    const { record, settlement } = event
    const serdes = bindings.find(({ name }) => name === event.binding)?.definition.serdes
    if (settlement !== "Handled" || serdes === undefined) return []
    if (binding !== undefined && binding !== event.binding) return []
    const key = TestRecord.read(record.key, serdes.key, record)
    const value = TestRecord.read(record.value, serdes.value, record)
    return [{ binding: event.binding, key, value, record, atMillis }]
  })
