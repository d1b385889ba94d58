/** The flags of `eventbus console`. */
import type * as Option from "effect/Option"

/** Those about a page of its own. */
export interface Options {
  readonly profile: ReadonlyArray<string>
  readonly brokers: Option.Option<string>
  readonly port: Option.Option<number>
  readonly host: Option.Option<string>
  readonly payload: boolean
  readonly write: boolean
  /** The module with a program's outbox store. */
  readonly outbox: Option.Option<string>
}
