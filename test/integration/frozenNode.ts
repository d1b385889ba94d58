/** A story of three brokers of which one accepts connections and answers nothing: partitions of the others go on, and bindings start. */
import { assert } from "@effect/vitest"
import { Binding, Broker, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import type { RealKafka } from "@eventbus/kafka-runner"
import { Effect } from "effect"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"

const partitions = 6
const sessionMillis = 10_000

/** The partition of `__consumer_offsets` that holds a group: Java's hash of its name. */
const offsetsPartition = (groupId: string, count: number): number => {
  let hash = 0
  for (const character of groupId) hash = (Math.imul(hash, 31) + character.charCodeAt(0)) | 0
  return (hash & 0x7fffffff) % count
}

/** A new group that the node coordinates, or does not. */
const groupOf = (name: string, offsetLeaders: ReadonlyArray<number>, isOn: (node: number) => boolean): string => {
  for (;;) {
    const groupId = Bus.fresh(name)
    if (isOn(offsetLeaders[offsetsPartition(groupId, offsetLeaders.length)]!)) return groupId
  }
}

/** A binding that notes when it handles a record, by partition. */
const reader = (topic: string, groupId: string, ackMode: "MANUAL" | "MANUAL_IMMEDIATE", concurrency = 2) => {
  const times = Array.from({ length: partitions }, (): Array<number> => [])
  const values = new Set<string>()
  const binding = Binding.make(groupId, {
    ...{
      topic,
      groupId,
      ackMode,
      value: Serde.string,
      retry: RetryPolicy.blocking(),
      concurrency,
      naming: TopicName.perGroup,
      // With a broker away a topic of three replicas cannot be made.
      missingTopics: "wait"
    },
    ...Transport.membership({ sessionTimeout: sessionMillis, heartbeatInterval: 3_000 }),
    autoOffsetReset: "earliest",
    handler: ({ record: { partition }, value }) =>
      Effect.sync(() => {
        times[partition]!.push(performance.now())
        values.add(value)
      })
  })
  return { binding, times, values }
}

/** Publishes to each partition every 100 ms, also to those whose leader is silent. Counts what was acknowledged. */
const publishing = Effect.fnUntraced(function* (topic: string, acknowledged: Set<string>) {
  const producer = yield* (yield* Broker.Broker).producer({ acks: "leader" })
  const publishTo = (partition: number, index = 0): Effect.Effect<never, unknown> =>
    Effect.suspend(() => {
      const value = `${partition}-${index}`
      return producer.send({ topic, partition, key: null, value: Bus.bytes(value) }).pipe(
        Effect.tap(() => Effect.sync(() => acknowledged.add(value))),
        Effect.andThen(Effect.sleep("100 millis")),
        Effect.andThen(publishTo(partition, index + 1))
      )
    })
  yield* Effect.forEach(Array.from({ length: partitions }).keys(), (partition) => publishTo(partition), {
    concurrency: "unbounded",
    discard: true
  })
})

/** The longest time without a record between two moments, in milliseconds. */
const longestGap = (times: ReadonlyArray<number>, from: number, to: number): number => {
  const within = [from, ...times.filter((time) => time > from && time < to), to]
  return Math.max(...within.slice(1).map((time, index) => time - within[index]!))
}

/** How long a binding takes from its registration to its first record, in a client of its own. */
const startMillis = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, topic: string, groupId: string) {
  const late = reader(topic, groupId, "MANUAL", 1)
  const startedAt = performance.now()
  yield* Bus.on({ brokers }, Bus.start(late.binding))
  yield* Bus.until("the new binding handles", () => late.values.size > 0, { within: "30 seconds" })
  return performance.now() - startedAt
})

/** Freezes the node that coordinates two running groups, for a while. Answers the figures, in milliseconds. */
export const frozenNode = Effect.fnUntraced(function* (cluster: RealKafka.Cluster, frozenMillis: number) {
  const topic = Bus.fresh("frozen-node")
  // One replica each: with more, a frozen follower holds records back in Kafka itself.
  yield* Bus.withAdmin(({ createTopics }) => createTopics([{ topic, partitions, replicationFactor: 1 }]))
  // A new cluster makes the topic of committed offsets when a group is looked up.
  yield* Bus.committed(topic, topic)
  const offsetLeaders = yield* cluster.leaders("__consumer_offsets")
  const leaders = yield* cluster.leaders(topic)
  const victim = offsetLeaders[0]!
  const ofVictim = (name: string) => groupOf(name, offsetLeaders, (node) => node === victim)
  const manual = reader(topic, ofVictim("manual"), "MANUAL")
  const immediate = reader(topic, ofVictim("immediate"), "MANUAL_IMMEDIATE")
  const readers = [manual, immediate]
  const app = yield* Bus.start(...readers.map(({ binding }) => binding))
  const acknowledged = new Set<string>()
  yield* Effect.forkChild(publishing(topic, acknowledged))
  /** Whether each of the partitions has been handled more often than it was then. */
  const isBeyond = (counts: ReadonlyArray<ReadonlyArray<number>>, isCounted: (partition: number) => boolean) =>
    readers.every(({ times }, each) =>
      times.every(({ length }, partition) => !isCounted(partition) || length > counts[each]![partition]! + 3)
    )
  const counts = () => readers.map(({ times }) => times.map(({ length }) => length))
  const none = counts().map((each) => each.map(() => 0))
  yield* Bus.until("every partition is handled", () => isBeyond(none, () => true))

  yield* cluster.freeze(victim)
  const from = performance.now()
  const isHealthy = (partition: number) => leaders[partition] !== victim
  const figures = yield* Effect.gen(function* () {
    const frozen = counts()
    // A record is handled when the one before is committed, so this waits for another coordinator.
    yield* Bus.until("the other nodes have replaced the frozen one", () => isBeyond(frozen, isHealthy))
    const silentFirst = [cluster.bootstrap[victim - 1]!, ...cluster.bootstrap]
    const started = yield* startMillis(silentFirst, topic, Bus.fresh("late"))
    yield* Effect.sleep(frozenMillis - (performance.now() - from))
    const to = performance.now()
    const gapOf = ({ times }: typeof manual) =>
      Math.max(...times.filter((_, partition) => isHealthy(partition)).map((each) => longestGap(each, from, to)))
    return { started, manual: gapOf(manual), immediate: gapOf(immediate) }
  }).pipe(Effect.ensuring(cluster.thaw(victim)))
  assert.isTrue(leaders.some((_, partition) => isHealthy(partition)))
  const thawed = counts()
  yield* Bus.until("all partitions go on", () => isBeyond(thawed, () => true), {
    within: "60 seconds",
    otherwise: () => app.log.slice(-20)
  })
  const sent = Array.from(acknowledged)
  yield* Bus.until("every acknowledged record is handled", () =>
    readers.every(({ values }) => sent.every((value) => values.has(value)))
  )
  return { ...figures, log: app.log }
})
