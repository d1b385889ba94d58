/**
 * The partitions of one consumer session. Owns their state: phase, position, pause. Nothing here yields, so nothing needs a lock.
 *
 * `preparing` (assigned, its offsets are being looked up) > `waiting` (announced, or out of range; `seek` starts it) > `fetching` >
 * `revoking` (to be given up, still ours until it is released). A partition that is gone is out of the map; its object is never
 * used again, which makes late results of an old assignment recognisable.
 */
import { ConsumerRecord } from "@eventbus/core"

export interface Owned extends ConsumerRecord.TopicPartition {
  /** The generation in which it was assigned. */
  readonly generation: number
  phase: "preparing" | "waiting" | "fetching" | "revoking"
  /** The next offset to fetch. */
  position: bigint
  /** Since when it is paused, on a clock that nobody sets. */
  pausedMillis: number | undefined
  /** Grows with each seek: what was fetched for an older position is void. */
  seeks: number
  /** Its last fetch found nothing: it takes no share of the next one's bytes. */
  idle: boolean
  /** Its leader has answered a fetch of it: that it does not exist can then only mean that it was deleted. */
  answered: boolean
}

/** Partitions that were assigned in one generation. */
export interface Group {
  readonly generation: number
  readonly partitions: ReadonlyArray<Owned>
}

export const byGeneration = (partitions: ReadonlyArray<Owned>): ReadonlyArray<Group> => {
  const groups = new Map<number, Array<Owned>>()
  for (const partition of partitions) {
    const group = groups.get(partition.generation)
    if (group === undefined) groups.set(partition.generation, [partition])
    else group.push(partition)
  }
  return [...groups].map(([generation, partitions]) => ({ generation, partitions }))
}

/** What a new assignment changes. */
export interface Change {
  readonly added: ReadonlyArray<Owned>
  readonly revoked: ReadonlyArray<Group>
  /** How many were never announced: nobody has to let go of them. */
  readonly dropped: number
  readonly isFirst: boolean
}

export class Ownership {
  readonly #partitions = new Map<string, Owned>()
  #hasAssignment = false

  get({ topic, partition }: ConsumerRecord.TopicPartition): Owned | undefined {
    return this.#partitions.get(ConsumerRecord.partitionKey(topic, partition))
  }

  /** True while this very assignment lasts. */
  holds(owned: Owned): boolean {
    return this.get(owned) === owned
  }

  get size(): number {
    return this.#partitions.size
  }

  all(): ReadonlyArray<Owned> {
    return [...this.#partitions.values()]
  }

  /** How many are likely to have something to fetch. */
  busy(): number {
    return this.all().filter(({ idle }) => !idle).length
  }

  /** What may be fetched now. */
  fetchable(): ReadonlyArray<Owned> {
    return this.all().filter(({ phase, pausedMillis }) => phase === "fetching" && pausedMillis === undefined)
  }

  /** Takes a new assignment over. */
  assign(generation: number, assignment: ReadonlyArray<ConsumerRecord.TopicPartition>): Change {
    const keys = new Set(assignment.map(({ topic, partition }) => ConsumerRecord.partitionKey(topic, partition)))
    const gone = [...this.#partitions].filter(([key]) => !keys.has(key))
    const dropped = gone.filter(([, { phase }]) => phase === "preparing")
    for (const [key] of dropped) this.#partitions.delete(key)
    const revoked = gone.flatMap(([, owned]) =>
      owned.phase === "waiting" || owned.phase === "fetching" ? [owned] : []
    )
    for (const owned of revoked) owned.phase = "revoking"
    const added = assignment.flatMap(({ topic, partition }) => {
      const key = ConsumerRecord.partitionKey(topic, partition)
      if (this.#partitions.has(key)) return []
      const owned: Owned = {
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
    return { added, revoked: byGeneration(revoked), dropped: dropped.length, isFirst }
  }

  /** Gives up those of `partitions` that are still held; returns them. */
  remove(partitions: ReadonlyArray<Owned>): ReadonlyArray<Owned> {
    const held = partitions.filter((owned) => this.holds(owned))
    for (const { topic, partition } of held) this.#partitions.delete(ConsumerRecord.partitionKey(topic, partition))
    return held
  }

  /** Gives up everything; returns what somebody has been told about. */
  clear(): ReadonlyArray<Group> {
    const announced = this.all().filter(({ phase }) => phase !== "preparing")
    this.#partitions.clear()
    return byGeneration(announced)
  }

  /** Sets a position, and starts fetching; false when the partition is not ours to move. */
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

  resume(targets: ReadonlyArray<ConsumerRecord.TopicPartition>): void {
    for (const owned of this.#owned(targets)) owned.pausedMillis = undefined
  }

  #owned(targets: ReadonlyArray<ConsumerRecord.TopicPartition>): ReadonlyArray<Owned> {
    return targets.flatMap((target) => this.get(target) ?? [])
  }
}
