/** The flags of `eventbus console`. */
import type * as Option from "effect/Option"
import type { Cluster } from "../flags.ts"

/** Those about a page of its own. */
export interface Options {
  readonly profile: ReadonlyArray<string>
  readonly cluster: Cluster
  readonly port: Option.Option<number>
  readonly host: Option.Option<string>
  readonly payload: boolean
  readonly write: boolean
  /** The module with a program's outbox store. */
  readonly outbox: Option.Option<string>
}
