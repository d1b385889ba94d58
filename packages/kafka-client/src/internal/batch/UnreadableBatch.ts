/** The failure of a batch that cannot be read (ruling 79). It concerns this batch, and no connection or request. */
import type { CodecName } from "../codec/codecNames.ts"

/**
 * - `codec`: this program cannot read the batch's codec.
 * - `broken`: the bytes do not hold what they say.
 * - `tooLarge`: reading it takes more memory than the consumer may use.
 * - `format`: a record format that is not supported.
 */
export type Problem = "codec" | "broken" | "tooLarge" | "format"

/** The facts that are known of the batch. */
export interface BatchFacts {
  /** Undefined when its number is not known, or cannot be read. */
  readonly codec: CodecName | undefined
  /** Undefined when the header cannot be trusted. */
  readonly lastOffset: bigint | undefined
  /** Number of records. Undefined when the header cannot be trusted. */
  readonly count: number | undefined
}

export class UnreadableBatch extends Error {
  readonly problem: Problem
  readonly facts: BatchFacts

  constructor(problem: Problem, detail: string, facts: BatchFacts) {
    super(detail)
    this.name = "UnreadableBatch"
    this.problem = problem
    this.facts = facts
  }
}
