/**
 * The partitions of one consumer session. Owns their state: phase, position, pause. Nothing here yields, so nothing needs a lock.
 *
 * Phases: `preparing` (assigned, its offsets are being looked up) > `waiting` (announced, or out of range; `seek` starts it) > `fetching` >
 * `revoking` (to be released, still owned until then). A partition that is released or lost leaves the map and its object is never used again, so
 * that late results of an old assignment are recognised.
 */
import { ConsumerRecord } from "@eventbus/core"

export interface OwnedPartition extends ConsumerRecord.TopicPartition {
  /** The generation in which it was assigned. */
  readonly generation: number
  phase: "preparing" | "waiting" | "fetching" | "revoking"
  /** The next offset to fetch. */
  position: bigint
  /** When it was paused, in milliseconds of a clock that is never set (`performance.now`); undefined when it is not paused. */
  pausedMillis: number | undefined
  /** Number of seeks. Records fetched before the last one are void. */
  seeks: number
  /** The last fetch found nothing, so the partition takes no share of the next fetch's bytes. */
  idle: boolean
  /** The leader has answered a fetch of this partition. If the leader does not know it later, it was deleted. */
  answered: boolean
}

/** Partitions assigned in one generation. */
export interface GenerationPartitions {
  readonly generation: number
  readonly partitions: ReadonlyArray<OwnedPartition>
}

/** Groups partitions by the generation in which they were assigned. */
export const byGeneration = (partitions: ReadonlyArray<OwnedPartition>): ReadonlyArray<GenerationPartitions> => {
  const groups = new Map<number, Array<OwnedPartition>>()
  for (const partition of partitions) {
    const group = groups.get(partition.generation)
    if (group === undefined) groups.set(partition.generation, [partition])
    else group.push(partition)
  }
  return [...groups].map(([generation, partitions]) => ({ generation, partitions }))
}

/** The difference between the last assignment and a new one. */
export interface AssignmentChange {
  readonly added: ReadonlyArray<OwnedPartition>
  readonly revoked: ReadonlyArray<GenerationPartitions>
  /** Number of removed partitions that were never announced, so that nobody has to release them. */
  readonly dropped: number
  /** True for the session's first assignment. */
  readonly isFirst: boolean
}

export class Ownership {
  readonly #partitions = new Map<string, OwnedPartition>()
  #hasAssignment = false

  get({ topic, partition }: ConsumerRecord.TopicPartition): OwnedPartition | undefined {
    return this.#partitions.get(ConsumerRecord.partitionKey(topic, partition))
  }

  /** True while this assignment of the partition lasts. */
  holds(owned: OwnedPartition): boolean {
    return this.get(owned) === owned
  }

  get size(): number {
    return this.#partitions.size
  }

  all(): ReadonlyArray<OwnedPartition> {
    return [...this.#partitions.values()]
  }

  /** Number of partitions that probably have records to fetch. */
  activeCount(): number {
    return this.all().filter(({ idle }) => !idle).length
  }

  /** Partitions that may be fetched now. */
  fetchable(): ReadonlyArray<OwnedPartition> {
    return this.all().filter(({ phase, pausedMillis }) => phase === "fetching" && pausedMillis === undefined)
  }

  /** Applies a new assignment. */
  assign(generation: number, assignment: ReadonlyArray<ConsumerRecord.TopicPartition>): AssignmentChange {
    const keys = new Set(assignment.map(({ topic, partition }) => ConsumerRecord.partitionKey(topic, partition)))
    const { revoked, dropped } = this.#revoke((key) => !keys.has(key))
    const added = assignment.flatMap(({ topic, partition }) => {
      const key = ConsumerRecord.partitionKey(topic, partition)
      if (this.#partitions.has(key)) return []
      const owned: OwnedPartition = {
        topic,
        partition,
        generation,
        phase: "preparing",
        position: 0n,
        pausedMillis: undefined,
        seeks: 0,
        idle: false,
        answered: false
      }
      this.#partitions.set(key, owned)
      return [owned]
    })
    const isFirst = !this.#hasAssignment
    this.#hasAssignment = true
    return { added, revoked, dropped, isFirst }
  }

  /** Asks for all partitions back, and returns those that were announced and not asked for yet. Those that were not announced are gone. */
  revokeAll(): ReadonlyArray<GenerationPartitions> {
    return this.#revoke(() => true).revoked
  }

  /** Removes those of `partitions` that are still owned, and returns them. */
  remove(partitions: ReadonlyArray<OwnedPartition>): ReadonlyArray<OwnedPartition> {
    const held = partitions.filter((owned) => this.holds(owned))
    for (const { topic, partition } of held) this.#partitions.delete(ConsumerRecord.partitionKey(topic, partition))
    return held
  }

  /** Removes all partitions, and returns those that were announced. */
  clear(): ReadonlyArray<GenerationPartitions> {
    const announced = this.all().filter(({ phase }) => phase !== "preparing")
    this.#partitions.clear()
    return byGeneration(announced)
  }

  /** Sets a position and starts fetching; false when the partition is not owned, not announced yet, or to be released. */
  seek(target: ConsumerRecord.TopicPartition, offset: bigint): boolean {
    const owned = this.get(target)
    if (owned === undefined || owned.phase === "revoking" || owned.phase === "preparing") return false
    owned.position = offset
    owned.seeks += 1
    owned.phase = "fetching"
    return true
  }

  pause(targets: ReadonlyArray<ConsumerRecord.TopicPartition>, nowMillis: number): void {
    for (const owned of this.#owned(targets)) owned.pausedMillis ??= nowMillis
  }

  /** Returns whether one of them was paused before `sinceMillis`, in milliseconds of the same clock. */
  resume(targets: ReadonlyArray<ConsumerRecord.TopicPartition>, sinceMillis: number): boolean {
    const owned = this.#owned(targets)
    const isLong = owned.some(({ pausedMillis }) => pausedMillis !== undefined && pausedMillis < sinceMillis)
    for (const one of owned) one.pausedMillis = undefined
    return isLong
  }

  #revoke(isGone: (key: string) => boolean): Pick<AssignmentChange, "revoked" | "dropped"> {
    const gone = [...this.#partitions].filter(([key]) => isGone(key))
    const dropped = gone.filter(([, { phase }]) => phase === "preparing")
    for (const [key] of dropped) this.#partitions.delete(key)
    const revoked = gone.flatMap(([, owned]) =>
      owned.phase === "waiting" || owned.phase === "fetching" ? [owned] : []
    )
    for (const owned of revoked) owned.phase = "revoking"
    return { revoked: byGeneration(revoked), dropped: dropped.length }
  }

  #owned(targets: ReadonlyArray<ConsumerRecord.TopicPartition>): ReadonlyArray<OwnedPartition> {
    return targets.flatMap((target) => this.get(target) ?? [])
  }
}
