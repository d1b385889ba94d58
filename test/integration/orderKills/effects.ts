/**
 * The effects of the handlers: one line for each step, in one file to which all processes append. A line is one write at the end of the file (O_APPEND), so the order of the lines is
 * the order of the steps, whatever process took them, and a process that dies by kill -9 has written every step that it took.
 */

/** One time of a process as owner of a partition, from its assignment on: `{pid}-{count}`. */
export type Tenure = string

/** A handler began, succeeded or failed. */
export interface Step {
  readonly _tag: "Started" | "Done" | "Failed"
  readonly tenure: Tenure
  /** Where the record lies in the source: `{partition}-{offset}`. */
  readonly place: string
  /** 0 for the source, else the number of the retry topic that it came from. */
  readonly tier: number
}

/** A process owns a partition of the source. It handles nothing of it before this line. */
export interface Assigned {
  readonly _tag: "Assigned"
  readonly tenure: Tenure
  readonly partition: number
}

export type Line = Step | Assigned

export const partitionOf = (place: string): number => Number.parseInt(place, 10)

export const pidOf = (tenure: Tenure): number => Number.parseInt(tenure, 10)
