/**
 * The text beside the committed offsets of one assignment. The epoch of order per key changes with the offset; all else stays.
 */
import * as CommitMetadata from "./commitMetadata.ts"
import type { OrderedPart } from "./orderedPart.ts"

export class CommitText {
  /** Without the epoch. */
  readonly fixed: string | undefined
  /** As the former owner's commit says, or a former unit. */
  #epoch: number | undefined

  constructor(fixed: string | undefined, epoch: number | undefined) {
    this.fixed = fixed
    this.#epoch = epoch
  }

  /** The text of a commit at this offset. */
  at(offset: bigint, order: OrderedPart | undefined): string | undefined {
    return CommitMetadata.withEpoch(this.fixed, this.epochAt(offset, order))
  }

  epochAt(offset: bigint, order: OrderedPart | undefined): number | undefined {
    return order?.epochAt(offset) ?? this.#epoch
  }

  /** No key is parked, and none will be: commits say so. */
  forgetEpoch(): void {
    this.#epoch = undefined
  }
}
