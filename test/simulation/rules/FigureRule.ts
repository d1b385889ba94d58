/**
 * A rule about the figures of a process (ruling 75).
 */
import type { FigureBook } from "../history/FigureBook.ts"
import type { Entry } from "../history/History.ts"

/** Somebody reads the figures of a process. */
export type Read = Extract<Entry, { readonly _tag: "Read" }>

export interface FigureRule {
  readonly name: string
  /** Checks a reading against the history before it. Returns a sentence when a figure is wrong. */
  readonly check: (read: Read, book: FigureBook) => string | undefined
}
