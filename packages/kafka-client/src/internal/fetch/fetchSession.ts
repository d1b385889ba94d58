/**
 * A fetch session with one node (KIP-227): the node remembers what was asked for, so a request names only the partitions that have changed, and an answer only those with something new.
 * A topic stands here by its id.
 */
import { ConsumerRecord } from "@eventbus/core"
import type { FetchSessionEpoch } from "../protocol/apis.ts"

/** A partition of a fetch, and the most bytes of it. */
export interface FetchedFrom extends ConsumerRecord.RecordPosition {
  readonly maxBytes: number
}

/** The next request of a session. */
export interface SessionRequest {
  readonly session: FetchSessionEpoch
  /** Partitions that are new to the session, or asked for otherwise than before; all where the session begins. */
  readonly partitions: ReadonlyArray<FetchedFrom>
  readonly forgotten: ReadonlyArray<ConsumerRecord.TopicPartition>
}

/** Java's `Integer.MAX_VALUE`, behind which epochs begin at 1 again. */
const lastEpoch = 0x7fffffff

const keyOf = ({ topic, partition }: ConsumerRecord.TopicPartition) => ConsumerRecord.partitionKey(topic, partition)

export class FetchSession {
  /** 0 while the node has no session for this client. */
  #id = 0
  #epoch = 0
  /** The partitions as the node knows them, by partition key. */
  #known: ReadonlyMap<string, FetchedFrom> = new Map()

  /** Whether the next request names changes only. */
  get isIncremental(): boolean {
    return this.#epoch > 0
  }

  /** The request that asks for exactly these partitions. */
  next(partitions: ReadonlyArray<FetchedFrom>): SessionRequest {
    const session = { id: this.#id, epoch: this.#epoch }
    const before = this.#known
    const asked = new Map(partitions.map((one) => [keyOf(one), one]))
    this.#known = asked
    if (!this.isIncremental) return { session, partitions, forgotten: [] }
    return {
      session,
      partitions: partitions.filter((one) => {
        const known = before.get(keyOf(one))
        return known?.offset !== one.offset || known.maxBytes !== one.maxBytes
      }),
      forgotten: Array.from(before.values()).filter((one) => !asked.has(keyOf(one)))
    }
  }

  /** The node has answered the last request. `sessionId`: 0 where it keeps no session. */
  answered(sessionId: number): void {
    this.#id = sessionId
    if (sessionId === 0) this.#epoch = 0
    else this.#epoch = this.#epoch === lastEpoch ? 1 : this.#epoch + 1
  }

  /** The next request begins another session, and ends this one, which the node may or may not know. */
  restart(): void {
    this.#epoch = 0
  }

  /** The node does not know this session. */
  forget(): void {
    this.#id = 0
    this.#epoch = 0
  }
}
