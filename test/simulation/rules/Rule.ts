/**
 * A rule that must hold in every run.
 */
import type { Entry } from "../history/History.ts"
import type { Ledger } from "../history/Ledger.ts"

export interface Rule {
  readonly name: string
  /** Checks the next entry of a history against the state before it. Returns a sentence when the entry breaks the rule. */
  readonly check: (entry: Entry, ledger: Ledger) => string | undefined
}

type EntryOf<T extends Entry["_tag"]> = Extract<Entry, { readonly _tag: T }>

/** A rule about entries of one kind. */
export const on =
  <T extends Entry["_tag"]>(tag: T, check: (entry: EntryOf<T>, ledger: Ledger) => string | undefined): Rule["check"] =>
  (entry, ledger) =>
    entry._tag === tag ? check(entry as EntryOf<T>, ledger) : undefined
