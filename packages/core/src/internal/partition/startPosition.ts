/**
 * The position where reading starts, and the records in front of it that no consumer will see (rulings 5, 8; connector seed §4.8).
 */
import type { AssignedPartition } from "../../Broker.ts"

/** Offsets that are not in the log (any more). `gone` is undefined where the number cannot be known. */
export interface Gap {
  readonly from: bigint
  readonly to: bigint
  readonly gone: bigint | undefined
  /** `retention`: deleted before they were read. `log-replaced`: the topic was recreated or truncated. `invalid-commit`: the committed offset was no offset. */
  readonly cause: "retention" | "log-replaced" | "invalid-commit"
}

export interface StartPosition {
  readonly position: bigint
  readonly gap: Gap | undefined
  /** Whether a restart would begin at the same record even without a commit until then. */
  readonly anchored: boolean
}

/** The position after an assignment. A group that has read before never jumps to the end. */
export const afterAssignment = (
  assigned: Pick<AssignedPartition, "committed" | "logStart" | "logEnd">,
  autoOffsetReset: "earliest" | "latest"
): StartPosition => {
  const { committed, logStart, logEnd } = assigned
  if (committed === undefined) {
    // The end moves: without a commit, a restart would jump over what arrived meanwhile (ruling 8).
    return autoOffsetReset === "earliest"
      ? { position: logStart, gap: undefined, anchored: true }
      : { position: logEnd, gap: undefined, anchored: false }
  }
  if (committed < 0n) {
    const gap = { from: committed, to: logStart, gone: undefined, cause: "invalid-commit" } as const
    return { position: logStart, gap, anchored: false }
  }
  // An offset behind the end may only mean that `logEnd` is old. The broker decides, by an out-of-range answer to the fetch.
  return committed < logStart
    ? afterOutOfRange({ position: committed, logStart, logEnd })
    : { position: committed, gap: undefined, anchored: true }
}

/** The position after the broker has answered that the old one is out of range: always the earliest that is left. */
export const afterOutOfRange = (seen: {
  readonly position: bigint
  readonly logStart: bigint
  readonly logEnd: bigint
}): StartPosition => {
  const { position, logStart } = seen
  return {
    position: logStart,
    // Committed, so that the same gap is not reported again after a restart.
    anchored: false,
    gap:
      position < logStart
        ? { from: position, to: logStart, gone: logStart - position, cause: "retention" }
        : { from: position, to: logStart, gone: undefined, cause: "log-replaced" }
  }
}
