/**
 * Epochs. Each owner of a unit writes a claim of a higher epoch into its retry topics before it starts. From a claim on, locks of a lower epoch are void: an owner that lost the
 * unit may still publish them.
 */
import { maxEpoch } from "../record/orderHeaders.ts"

/** Owners of one generation of the group: a static member that restarts keeps the generation. */
const perGeneration = 2 ** 20

/** An epoch above every one that was seen. The generation comes first, so that a member that was replaced cannot make a higher one. */
export const epochAfter = (highestSeen: number, generation: number): number =>
  Math.min(maxEpoch, Math.max(highestSeen + 1, Math.max(0, generation) * perGeneration))

interface Claim {
  readonly at: bigint
  readonly epoch: number
}

/** The claims of one retry partition, from the committed offset on. */
export class Claims {
  readonly #claims: Array<Claim>

  /** `epoch`: in force at the committed offset. */
  constructor(epoch: number) {
    this.#claims = [{ at: -1n, epoch }]
  }

  get epoch(): number {
    return this.#claims.at(-1)!.epoch
  }

  /** A claim at an offset behind all others. One that was seen before is passed over. */
  add(at: bigint, epoch: number): void {
    if (at > this.#claims.at(-1)!.at) this.#claims.push({ at, epoch: Math.max(this.epoch, epoch) })
  }

  /** The epoch in force at an offset: that of the last claim below it. */
  at(offset: bigint): number {
    let epoch = this.#claims[0]!.epoch
    for (const claim of this.#claims) if (claim.at < offset) epoch = claim.epoch
    return epoch
  }
}
