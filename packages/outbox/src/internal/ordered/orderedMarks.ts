/**
 * The marks of ordered delivery: each under the lease of its bucket, or under the lock of its row when the bucket was handed over while
 * the event was in flight.
 */
import * as Effect from "effect/Effect"
import type { OutboxStoreError } from "../../OutboxError.ts"
import { type Fence, openFence, type StoreShape } from "../store/contract.ts"
import type { OutboxEvent } from "../store/rows.ts"
import type { InFlightEvent } from "./laneWorker.ts"

/** The node of these leases. */
export interface LeaseSettings {
  /** The node's name in the table. */
  readonly owner: string
  readonly leaseMillis: number
}

export class OrderedMarks {
  readonly #store: StoreShape
  /** Undefined without leases: then nothing is fenced. */
  readonly #leases: LeaseSettings | undefined

  constructor(store: StoreShape, leases: LeaseSettings | undefined) {
    this.#store = store
    this.#leases = leases
  }

  /** Another node handed the bucket over while it handled this event, and has not marked it yet. */
  isLockedByOther({ lockedBy, lockedMillis }: OutboxEvent): boolean {
    return (
      this.#leases !== undefined &&
      lockedBy !== undefined &&
      lockedBy !== this.#leases.owner &&
      lockedMillis < this.#leases.leaseMillis
    )
  }

  /** Marks delivered events. One that finished after its lease was lost is not marked: the bucket's new owner decides. */
  markDone(items: ReadonlyArray<InFlightEvent>): Effect.Effect<unknown, OutboxStoreError> {
    const leased = items.filter((item) => !item.lease.lost && !item.handedOver)
    const ids = leased.map((item) => item.event.eventId)
    const rowAddresses = leased.map((item) => item.event.rowAddress)
    // A handover that begins while the first statement runs makes the second one necessary.
    return Effect.flatMap(this.#store.markDone(ids, this.#bucketFence(leased), rowAddresses), () => {
      const handedOver = items.filter((item) => item.handedOver).map((item) => item.event.eventId)
      return handedOver.length === 0 ? Effect.void : this.#store.markDone(handedOver, this.#lockFence)
    })
  }

  /** Changes the row of one event. Returns rows changed. */
  change(
    item: InFlightEvent,
    mark: (fence: Fence) => Effect.Effect<number, OutboxStoreError>
  ): Effect.Effect<number, OutboxStoreError> {
    const underLock = Effect.suspend(() => (item.handedOver ? mark(this.#lockFence) : Effect.succeed(0)))
    return item.handedOver
      ? underLock
      : Effect.flatMap(mark(this.#bucketFence([item])), (changed) =>
          changed > 0 ? Effect.succeed(changed) : underLock
        )
  }

  /** Releases the lock of a row that is not marked, so that the bucket's new owner need not wait for it to expire. */
  releaseLock({ event }: InFlightEvent): Effect.Effect<void> {
    return this.#leases === undefined
      ? Effect.void
      : Effect.ignore(this.#store.releaseClaims(this.#leases.owner, [event.eventId]))
  }

  #bucketFence(items: ReadonlyArray<InFlightEvent>): Fence {
    if (this.#leases === undefined) return openFence
    const epochs = new Map(items.map(({ lease }) => [lease.bucket, lease.epoch]))
    return { _tag: "Buckets", owner: this.#leases.owner, epochs }
  }

  /** A lock counts for as long as the bucket's next owner respects it. */
  get #lockFence(): Fence {
    return this.#leases === undefined
      ? openFence
      : { _tag: "Claim", owner: this.#leases.owner, maxAge: this.#leases.leaseMillis }
  }
}
