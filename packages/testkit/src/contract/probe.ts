/**
 * The smallest correct consumer. It seeks its assigned partitions, collects records, releases revoked partitions, and keeps every event.
 */
import { Broker, type BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { assert } from "vitest"
import { eventuallyTrue, text } from "./harness.ts"

type TopicPartition = ConsumerRecord.TopicPartition

interface ProbeOptions extends Broker.ConsumerOptions {
  /** `resume`: seeks to the committed offset, or to the log start when there is none (default). `wait`: the test seeks. */
  readonly onAssigned?: "resume" | "wait"
  /** `commit`: commits the collected records, then releases (default). `release`: releases only. `hold`: the test releases. */
  readonly onRevoked?: "commit" | "release" | "hold"
}

interface Owned extends Broker.AssignedPartition {
  readonly generation: number
}

export class Probe {
  readonly session: Broker.ConsumerSession
  readonly groupId: string
  readonly events: Array<Broker.ConsumerEvent> = []
  readonly records: Array<ConsumerRecord.ConsumerRecord> = []
  /** By partition key, until the partition is released or lost. */
  readonly owned = new Map<string, Owned>()
  /** The position behind the collected records, by partition key. */
  readonly positions = new Map<string, bigint>()
  /** How the events ended. */
  end: Exit.Exit<never, BrokerError.BrokerError> | undefined
  private readonly options: ProbeOptions

  constructor(session: Broker.ConsumerSession, options: ProbeOptions) {
    this.session = session
    this.groupId = options.groupId
    this.options = options
  }

  get values(): ReadonlyArray<string | null> {
    return this.records.map((record) => text(record.value))
  }

  get partitions(): ReadonlyArray<string> {
    return [...this.owned.keys()].sort()
  }

  of<Tag extends Broker.ConsumerEvent["_tag"]>(
    tag: Tag
  ): ReadonlyArray<Extract<Broker.ConsumerEvent, { readonly _tag: Tag }>> {
    return this.events.filter(
      (event): event is Extract<Broker.ConsumerEvent, { readonly _tag: Tag }> => event._tag === tag
    )
  }

  /** An owned partition as it was assigned; dies when the probe does not own it. */
  own(topic: string, partition = 0): Owned {
    const owned = this.owned.get(ConsumerRecord.partitionKey(topic, partition))
    assert.isDefined(owned, `the probe does not own ${topic}/${partition}`)
    return owned
  }

  /** Waits until the probe owns this many partitions. */
  readonly owns = (count: number): Effect.Effect<void> =>
    eventuallyTrue(() => assert.strictEqual(this.owned.size, count, "number of owned partitions"))

  /** Waits until the probe has collected at least this many records. */
  readonly collects = (count: number): Effect.Effect<void> =>
    eventuallyTrue(() => assert.isAtLeast(this.records.length, count, "number of collected records"))

  /** Commits an offset under the current assignment of the partition. */
  readonly commit = (topic: string, partition: number, offset: bigint): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.suspend(() => {
      const { generation } = this.own(topic, partition)
      return this.session.commit([{ topic, partition, generation, offset }])
    })

  /** Commits the position behind the collected records. */
  readonly commitCollected = (
    partitions: ReadonlyArray<TopicPartition>
  ): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.suspend(() => {
      const entries = partitions.flatMap(({ topic, partition }) => {
        const key = ConsumerRecord.partitionKey(topic, partition)
        const offset = this.positions.get(key)
        const owned = this.owned.get(key)
        return offset === undefined || !owned ? [] : [{ topic, partition, offset, generation: owned.generation }]
      })
      return entries.length === 0 ? Effect.void : this.session.commit(entries)
    })

  /** Releases the partitions of a `Revoked` event. */
  readonly release = (event: Extract<Broker.ConsumerEvent, { readonly _tag: "Revoked" }>): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.drop(event.partitions)
      return event.release
    })

  readonly run: Effect.Effect<void> = Effect.suspend(() =>
    Queue.take(this.session.events).pipe(
      Effect.flatMap((event) => this.on(event)),
      Effect.forever,
      Effect.onExit((exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit)) this.end = exit
        })
      ),
      Effect.ignore
    )
  )

  private on(event: Broker.ConsumerEvent): Effect.Effect<void> {
    this.events.push(event)
    switch (event._tag) {
      case "Assigned":
        return this.onAssigned(event)
      case "Revoked":
        return this.onRevoked(event)
      case "Lost":
        return Effect.sync(() => this.drop(event.partitions))
      case "Fetched":
        return Effect.sync(() => {
          const { topic, partition, nextOffset, records } = event.chunk
          this.records.push(...records)
          this.positions.set(ConsumerRecord.partitionKey(topic, partition), nextOffset)
        })
      case "OutOfRange":
      case "Unreadable":
        return Effect.void
    }
  }

  private onAssigned(event: Extract<Broker.ConsumerEvent, { readonly _tag: "Assigned" }>): Effect.Effect<void> {
    for (const partition of event.partitions) {
      const key = ConsumerRecord.partitionKey(partition.topic, partition.partition)
      this.owned.set(key, { ...partition, generation: event.generation })
      this.positions.delete(key)
    }
    if (this.options.onAssigned === "wait") return Effect.void
    return Effect.forEach(event.partitions, (at) => this.session.seek(at, resumeAt(at)), { discard: true })
  }

  private onRevoked(event: Extract<Broker.ConsumerEvent, { readonly _tag: "Revoked" }>): Effect.Effect<void> {
    switch (this.options.onRevoked ?? "commit") {
      case "hold":
        return Effect.void
      case "release":
        return this.release(event)
      case "commit":
        return Effect.andThen(Effect.ignore(this.commitCollected(event.partitions)), this.release(event))
    }
  }

  private drop(partitions: ReadonlyArray<TopicPartition>): void {
    for (const { topic, partition } of partitions) this.owned.delete(ConsumerRecord.partitionKey(topic, partition))
  }
}

const resumeAt = ({ committed, logStart }: Broker.AssignedPartition): bigint =>
  committed === undefined || committed < logStart ? logStart : committed

/** Joins a group with short timeouts, so that rebalances are quick. Leaves at the end of the scope. */
export const join = Effect.fnUntraced(function* (
  options: ProbeOptions
): Effect.fn.Return<Probe, BrokerError.BrokerError, Broker.Broker | Scope.Scope> {
  const broker = yield* Broker.Broker
  const session = yield* broker.consumer({
    sessionTimeout: "6 seconds",
    rebalanceTimeout: "6 seconds",
    heartbeatInterval: "500 millis",
    fetchMaxWait: "100 millis",
    ...options
  })
  const probe = new Probe(session, options)
  yield* Effect.forkScoped(probe.run)
  return probe
})

/** The failure that ended the events; undefined when the session was closed. */
export const failedWith = (probe: Probe): BrokerError.BrokerError | undefined => {
  const found = probe.end && Exit.isFailure(probe.end) ? Cause.findErrorOption(probe.end.cause) : undefined
  return found?._tag === "Some" ? found.value : undefined
}

/** Waits until the members own all partitions of a topic together, each as many as `counts` says. */
export const shared = (probes: ReadonlyArray<Probe>, counts: ReadonlyArray<number>): Effect.Effect<void> =>
  eventuallyTrue(() => {
    assert.deepStrictEqual(probes.map((probe) => probe.owned.size).sort(), [...counts].sort(), "partitions per member")
    const all = probes.flatMap((probe) => probe.partitions)
    assert.strictEqual(new Set(all).size, all.length, "a partition is owned twice")
  })
