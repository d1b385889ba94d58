/**
 * The actions of operators that the audit log tells of, its entries, and the pages that are read of it. `Audit` has the operations.
 */
import * as Schema from "effect/Schema"

/** The ways an action can come in. A request over HTTP says itself that it is one of the console, or of the command line. */
export const sources = ["http", "console", "command-line"] as const
/** One of `sources`. */
export type Source = (typeof sources)[number]

/** Names and numbers that say what an action is about, such as `{ tier: 2 }`. Never a key, a value, a header or a credential. */
export type Target = Readonly<Record<string, string | number | boolean | ReadonlyArray<string>>>

/** An action of an operator. Texts are cut at 512 characters, lists at 50 texts. */
export interface Action {
  /** The name of the principal. Absent when nobody knows it. */
  readonly by?: string
  /** Where it came from. */
  readonly from: Source
  /** The permissions that it makes use of; where it comes to none, those of which it needs one. */
  readonly permissions: ReadonlyArray<string>
  /** The action, such as `pause`, by the name of its route. */
  readonly action: string
  /** The binding, as `{cluster}:{binding}`, or as the request named it when no binding has the name. Absent when it is about none. */
  readonly binding?: string
  /** The selection or the target. */
  readonly target?: Target
  /** Why, in the words of the operator. Cut at 1000 characters. */
  readonly reason?: string
  /** The id of the plan, run, rehearsal or command that it is about. */
  readonly run?: string
}

/**
 * How an action ended.
 *
 * - `done`: it was done. A run or a rehearsal has begun, and its receipt tells the rest.
 * - `refused`: nothing was done, for the reason of `error`.
 * - `failed`: a part of it may have been done.
 */
export interface Ending {
  /** See above. */
  readonly outcome: "done" | "refused" | "failed"
  /** The tag of the error. Absent when it was done. */
  readonly error?: string
}

/** An entry of the audit log. */
export interface AuditEntry extends Omit<Action, "from"> {
  /** Names the action. Its beginning and its end have the same id. */
  readonly id: string
  /** When the cluster appended the entry, epoch milliseconds. */
  readonly atMillis: number
  /** One of `sources`; an entry of a newer version may have another one. */
  readonly from: string
  /** The name of the host that wrote it. */
  readonly host: string
  /** As in `Ending`. `begun`: no end is known, because the action runs, or its process ended, or could not write it. */
  readonly outcome: "begun" | Ending["outcome"]
  /** The tag of the error, where it was refused or failed. */
  readonly error?: string
  /** How many like it were not written since the last one that was. */
  readonly repeats: number
}

/** The entries to show. */
export interface AuditQuery {
  /** The cursor `next` of the page before. Default: the newest entries. */
  readonly before?: string
  /** Only entries of this time or later, epoch milliseconds. Default: all. */
  readonly afterMillis?: number
  /** Only entries about this binding: `{cluster}:{binding}`, or its name. Default: all. */
  readonly binding?: string
  /** Most entries of the page, 1 to 500. Default 50. */
  readonly limit?: number
}

/** A page of the audit log, the newest entry first. */
export interface AuditPage {
  /** The entries. An action that has ended is shown once, by its end. */
  readonly entries: ReadonlyArray<AuditEntry>
  /** The cursor of the page that follows. Undefined on the last one. */
  readonly next: string | undefined
}

/** The audit log cannot be written, and `whenUnwritable` is `refuse`. Nothing was done, and no payload was shown. */
export class AuditUnavailable extends Schema.TaggedError<AuditUnavailable>()("AuditUnavailable", {
  /** The topic of the audit log. */
  topic: Schema.String,
  /** The message of the broker's error. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The audit log, topic '${this.topic}', cannot be written, so nothing was done: ${this.detail}`
  }
}

/** Told of an action while it runs, such as the id of the run that it has begun. */
export type Detail = Pick<Action, "binding" | "target" | "reason" | "run">
