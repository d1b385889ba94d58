/** Records on their way through retry topics to the dead letter topic of a real Kafka: every copy, its bytes, its headers and its time. */
import { assert } from "@effect/vitest"
import { Binding, type ConsumerRecord, RetryPolicy, Route, Serde, Trail } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect } from "effect"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down")<{ readonly message: string }> {}

const partitions = 3

/** Handler calls of one delivery; delays and deliveries of the tiers. */
const blocking = { maxAttempts: 2, initialBackoff: "5 millis", jitter: 0 } as const
const tiers = [
  { delay: 300, maxAttempts: 2, concurrency: 16 },
  { delay: 600, maxAttempts: 1, concurrency: 16 },
  { delay: 900, maxAttempts: 1, concurrency: 16 }
]
/** Deliveries of a record that never passes, in order: tier and attempt. */
const deliveries = ["0/1", "1/1", "1/2", "2/1", "3/1"]

const headerText = ({ headers }: ConsumerRecord.ConsumerRecord, name: string): string | null =>
  Bus.text(headers.findLast(({ key }) => key === name)?.value)

/** The user's headers, none of which may change on the way. */
const ofUser = (record: { readonly headers?: ReadonlyArray<ConsumerRecord.Header> }) =>
  (record.headers ?? []).filter(({ key }) => !key.startsWith("x-eventbus-"))

/** The passing delivery (an index of `deliveries`) and the number of a record; it is in a header, since values may be null. */
const idOf = (record: ConsumerRecord.ConsumerRecord): string => headerText(record, "id") ?? ""
const passesAt = (id: string): number => Number(id.split("-")[0])

const bodies = [
  { key: Bus.bytes("a key"), value: Bus.bytes("a value") },
  { key: null, value: Bus.bytes("no key") },
  { key: Bus.bytes("a key"), value: null },
  { key: null, value: null },
  { key: new Uint8Array(), value: new Uint8Array() },
  { key: Uint8Array.of(0xff, 0, 0xfe), value: Uint8Array.of(0, 0xff, 0xc3, 0x28) }
]

/** Records that pass in each delivery, and (pass at 5) that never pass, in every shape that Kafka knows. */
const mixed = (topic: string): ReadonlyArray<ConsumerRecord.ProducerRecord> =>
  Array.from({ length: 180 }, (_, index) => ({
    topic,
    partition: index % partitions,
    timestamp: 1_700_000_000_000 + index,
    ...bodies[Math.floor(index / 6) % bodies.length]!,
    headers: [
      { key: "twice", value: Bus.bytes("1") },
      { key: "id", value: Bus.bytes(`${index % 6}-${index}`) },
      { key: "nothing", value: null },
      { key: "twice", value: Bus.bytes("2") },
      { key: "constructor", value: Uint8Array.of(0xff, 0) },
      { key: "", value: new Uint8Array() }
    ]
  }))

interface Call {
  readonly id: string
  readonly delivery: string
  /** How long after it was due; undefined on the main topic. */
  readonly lateMillis: number | undefined
}

const dueMillis = (record: ConsumerRecord.ConsumerRecord, tier: number): number =>
  Number(headerText(record, "x-eventbus-retry-timestamp")) + tiers[tier - 1]!.delay

/** A binding whose handler fails until the delivery that the record passes in. */
const failing = (name: string, calls: Array<Call>) =>
  Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.bytes,
    retry: RetryPolicy.tiered({ blocking, tiers }),
    handler: ({ record, tier, attempt }) => {
      const id = idOf(record)
      const delivery = `${tier}/${attempt}`
      calls.push({ id, delivery, lateMillis: tier === 0 ? undefined : Date.now() - dueMillis(record, tier) })
      return deliveries.indexOf(delivery) < passesAt(id) ? Effect.fail(new Down({ message: `no ${id}` })) : Effect.void
    },
    onError: { Down: Route.retry }
  })

const byId = (records: ReadonlyArray<ConsumerRecord.ConsumerRecord>) => Map.groupBy(records, idOf)

/** Two calls in each delivery that fails, one in the delivery that passes; each when it is due. */
const checkCalls = (calls: ReadonlyArray<Call>, ids: ReadonlyArray<string>) => {
  const callsOf = Map.groupBy(calls, ({ id }) => id)
  assert.sameMembers(Array.from(callsOf.keys()), [...ids])
  for (const [id, mine] of callsOf) {
    const passing = passesAt(id)
    const expected = deliveries.slice(0, passing).flatMap((delivery) => [delivery, delivery])
    expected.push(...deliveries.slice(passing, passing + 1))
    const actual = mine.map(({ delivery }) => delivery)
    assert.deepStrictEqual(actual, expected, id)
  }
  const late = calls.flatMap(({ lateMillis }) => (lateMillis === undefined ? [] : [lateMillis]))
  late.sort((a, b) => a - b)
  assert.isAtLeast(late[0]!, 0, "nothing is early")
  assert.isBelow(late[Math.floor(late.length / 2)]!, 500, `lateness in ms: ${late}`)
}

type ById = ReadonlyMap<string, ReadonlyArray<ConsumerRecord.ConsumerRecord>>

/** A copy has the bytes of its original, says where that is, and was published since. */
const checkCopy = (source: ById, copy: ConsumerRecord.ConsumerRecord, sinceMillis: number) => {
  const original = source.get(idOf(copy))![0]!
  assert.deepStrictEqual([copy.key, copy.value, ofUser(copy)], [original.key, original.value, original.headers])
  for (const each of ["topic", "partition", "offset", "timestamp"] as const) {
    assert.strictEqual(headerText(copy, `x-eventbus-original-${each}`), String(original[each]))
  }
  const own = copy.headers.map(({ key }) => key).filter((key) => key.startsWith("x-eventbus-"))
  assert.strictEqual(new Set(own).size, own.length, "each header of ours once")
  if (copy.key === null) assert.strictEqual(copy.partition, original.partition)
  assert.isAtLeast(copy.timestamp, sinceMillis)
}

/** The copies of one record in a retry topic. */
const checkWait = (id: string, tier: number, copies: ReadonlyArray<ConsumerRecord.ConsumerRecord>) => {
  // Tier 1 has two deliveries.
  const attempts = copies.map((copy) => headerText(copy, "x-eventbus-retry-attempt"))
  assert.deepStrictEqual(attempts, tier === 1 && passesAt(id) > 1 ? ["1", "2"] : ["1"], id)
  for (const [index, copy] of copies.entries()) {
    const failedDeliveries = tier === 1 ? index + 1 : tier + 1
    assert.strictEqual(headerText(copy, "x-eventbus-retry-tier"), String(tier))
    assert.strictEqual(headerText(copy, "x-eventbus-total-attempts"), String(2 * failedDeliveries))
    assert.strictEqual(headerText(copy, `x-eventbus-tier${tier - 1}-exception`), "Down")
    assert.strictEqual(headerText(copy, `x-eventbus-tier${tier}-exception`), null)
  }
}

const checkLetter = (id: string, letter: ConsumerRecord.ConsumerRecord, sinceMillis: number) => {
  const expected = {
    ...{ "dlt-reason": "RETRIES_EXHAUSTED", "total-attempts": "10", "retry-tier": "3" },
    ...{ "tier0-attempts": "2", "tier1-attempts": "4", "tier2-attempts": "2", "tier3-attempts": "2" },
    ...{ "last-exception-class": "Down", "last-exception-message": `no ${id}` }
  }
  for (const [header, value] of Object.entries(expected)) {
    assert.strictEqual(headerText(letter, `x-eventbus-${header}`), value, header)
  }
  const times = [
    ...["first-failure-timestamp", "tier0-exhausted-at", "tier1-exhausted-at"],
    ...["tier2-exhausted-at", "tier3-exhausted-at", "dlt-timestamp"]
  ].map((each) => Number(headerText(letter, `x-eventbus-${each}`)))
  const inOrder = [sinceMillis, ...times, letter.timestamp]
  assert.deepStrictEqual(
    inOrder,
    inOrder.toSorted((a, b) => a - b)
  )
}

KafkaSuite.shared("retry tiers", (bootstrap) => {
  Bus.story(
    bootstrap,
    "RTY-06 RTY-07 RTY-09 RTY-12 RTY-13 RTY-14 RTY-15 RTY-17 DLT-03 DLT-06 DLT-08 DLT-12 DLT-13 ruling 20 every record takes exactly its way, byte for byte",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("tiers")
        yield* Bus.createTopic(name, partitions)
        const calls: Array<Call> = []
        const app = yield* Bus.start(failing(name, calls))
        const sinceMillis = Date.now()
        const published = mixed(name)
        yield* Bus.publish(published)
        const ended = () => app.of("Settled").filter(({ settlement }) => settlement !== "Routed")
        yield* Bus.until("all are handled or dead-lettered", () => ended().length >= published.length)
        const retryTopics = [1, 2, 3].map((tier) => `${name}.retry-${tier}`)
        for (const topic of [name, ...retryTopics]) yield* Bus.lagIsZero(name, topic)

        const source = byId(yield* Bus.readAll(name))
        const ids = Array.from(source.keys())
        assert.strictEqual(ids.length, published.length)
        checkCalls(calls, ids)

        for (const [index, topic] of retryTopics.entries()) {
          const tier = index + 1
          const copies = yield* Bus.readAll(topic)
          for (const copy of copies) checkCopy(source, copy, sinceMillis)
          const expected = ids.filter((id) => passesAt(id) > (tier === 1 ? 0 : tier))
          assert.sameMembers(Array.from(byId(copies).keys()), expected, topic)
          for (const [id, mine] of byId(copies)) checkWait(id, tier, mine)
          const keyed = copies.filter(({ key }) => key !== null)
          const homes = new Set(keyed.map(({ key, partition }) => `${key} in ${partition}`))
          assert.strictEqual(
            homes.size,
            new Set(keyed.map(({ key }) => String(key))).size,
            "one partition for each key"
          )
        }

        const letters = yield* Bus.readAll(`${name}.DLT`)
        assert.sameMembers(
          letters.map(idOf),
          ids.filter((id) => passesAt(id) === deliveries.length)
        )
        for (const letter of letters) {
          checkCopy(source, letter, sinceMillis)
          checkLetter(idOf(letter), letter, sinceMillis)
        }

        // The cluster alone tells the same.
        const { partition, offset } = source.get(idOf(letters[0]!))![0]!
        const hops = yield* Trail.trail({ topic: name, groupId: name }, { partition, offset })
        assert.deepStrictEqual(
          hops.map(({ kind, tier, attempt }) => `${kind} ${tier}/${attempt}`),
          ["main 0/1", "retry 1/1", "retry 1/2", "retry 2/1", "retry 3/1", "dead-letter 3/0"]
        )
      })
  )
})
