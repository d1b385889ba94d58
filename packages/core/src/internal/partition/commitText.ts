/**
 * The text beside the committed offsets of one assignment. Its part about order per key changes with the offset; all else stays.
 */
import * as CommitMetadata from "./commitMetadata.ts"
import type { OrderedPart } from "./orderedPart.ts"

/** The knowledge about order per key of the former owner, from its commit, or of a former unit. */
export interface OfOrder extends Pick<CommitMetadata.CommitMetadata, "epoch" | "parked"> {
  /** Whether a retry topic is read from behind what the group had committed, or where it had committed nothing, and no unit has begun since: locks may be gone. */
  readonly isCutOff?: boolean
}

export class CommitText {
  /** Without what it says about order per key. */
  readonly fixed: string | undefined
  #former: OfOrder

  constructor(fixed: string | undefined, former: OfOrder) {
    this.fixed = fixed
    this.#former = former
  }

  /** The text of a commit at this offset. */
  at(offset: bigint, order: OrderedPart | undefined): string | undefined {
    const { epoch, parked, isCutOff } = this.ofOrder(offset, order)
    const text = CommitMetadata.withParked(CommitMetadata.withEpoch(this.fixed, epoch), parked)
    return CommitMetadata.withCut(text, isCutOff)
  }

  ofOrder(offset: bigint, order: OrderedPart | undefined): OfOrder {
    if (order === undefined) return this.#former
    return { epoch: order.epochAt(offset) ?? this.#former.epoch, parked: order.parked() }
  }

  /** No key is parked, and none will be: commits say so. */
  forgetOrder(): void {
    this.#former = {}
  }
}
