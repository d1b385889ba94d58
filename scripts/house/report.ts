/**
 * The result of a check of the house, and how it is printed.
 */

/** One place that breaks a rule. */
export interface Violation {
  /** Path from the root of the tree, with `/`. */
  readonly file: string
  /** Counted from 1; undefined when the whole file is meant. */
  readonly line?: number
  readonly message: string
}

export interface Result {
  readonly violations: ReadonlyArray<Violation>
  /** One line that says what was looked at, with figures. */
  readonly summary: string
}

/** A check, given the root of the tree that it looks at. */
export type Check = (root: string) => Result

export const violationText = ({ file, line, message }: Violation): string =>
  `${line === undefined ? file : `${file}:${line}`}: ${message}`
