/**
 * The answers of the admin API about dead letters: groups, pages, one dead letter, and rehearsals. Times are ISO-8601 texts in UTC, absent where a time lies outside of what a
 * date can hold. A position is `{partition}@{offset}` in the dead letter topic.
 *
 * The parts that may quote a record (key, value, headers, the messages of errors, reasons in words) are there only for callers with the permission `view-payload`.
 */
import { DeadLetterList } from "@eventbus/core"
import * as Schema from "effect/Schema"

const optional = Schema.optionalKey

/** The number of dead letters of a group in each state. */
export const StateCounts = Schema.Struct({
  waiting: Schema.Int,
  exhausted: Schema.Int,
  failed: Schema.Int,
  dealtWith: Schema.Int
})
export type StateCounts = typeof StateCounts.Type

/**
 * The headers that say where a record was first. `eventbus`: those of the connector. `spring`: those of Spring Kafka. `unknown`: none, as of a record that another client, or somebody
 * by hand, wrote into the dead letter topic. A replay publishes such a record to the topic of the binding.
 */
export const origins = ["eventbus", "spring", "unknown"] as const

/** Dead letters that failed for the same reason. */
export const Group = Schema.Struct({
  /** The name of the group. */
  fingerprint: Schema.String,
  exceptionClass: Schema.String,
  /** The place in the application that the error comes from, else the path that could not be decoded. */
  frame: optional(Schema.String),
  /** The message of one of its errors, with `#` for numbers and ids. */
  message: optional(Schema.String),
  origin: Schema.Literals(origins),
  /** Absent where the origin is unknown. */
  originalTopic: optional(Schema.String),
  /** The topic of the binding in whose dead letter topic they lie. Absent where they are those of one topic. */
  sourceTopic: optional(Schema.String),
  /** Dead letters that are not dealt with. */
  count: Schema.Int,
  states: StateCounts,
  /** Of those that are dealt with, the ones that were given up. */
  discarded: Schema.Int,
  /** Dead letters that had been replayed before. */
  cameBack: Schema.Int,
  first: optional(Schema.String),
  last: optional(Schema.String),
  /** How many were dead-lettered in each of the last 24 hours, the oldest hour first. */
  trend: Schema.Array(Schema.Int),
  /** The newest positions, at most five. */
  samples: Schema.Array(Schema.String)
})
export type Group = typeof Group.Type

/** The groups of a dead letter topic. */
export const Groups = Schema.Struct({
  /** At most 1000, that with most dead letters to deal with first. */
  groups: Schema.Array(Group),
  /** Dead letters of all further groups. */
  other: Schema.Int,
  /** Dead letters of other consumer groups. */
  foreign: Schema.Int,
  /** Offsets of batches that cannot be read, an upper bound of their records. */
  unreadable: Schema.Int,
  /** When the topic was read: the end of the trends. */
  read: Schema.String
})
export type Groups = typeof Groups.Type

/** A replay of a dead letter, or a decision about it, as the journal of replays tells. */
export const LetterEvent = Schema.Struct({
  /** `replayed`: a run has copied it. `discarded`: somebody gave it up. `restored`: somebody let it wait again. */
  action: Schema.Literals(["replayed", "discarded", "restored"]),
  at: optional(Schema.String),
  /** Absent for a discard without a plan. */
  run: optional(Schema.String),
  by: optional(Schema.String),
  reason: optional(Schema.String),
  /** Where the copy of a replay is, as `{topic}-{partition}@{offset}`. */
  copy: optional(Schema.String)
})
export type LetterEvent = typeof LetterEvent.Type

/** A dead letter in a list. */
export const Summary = Schema.Struct({
  position: Schema.String,
  /** The topic of the binding in whose dead letter topic it lies. Absent where the answer is about one topic. */
  sourceTopic: optional(Schema.String),
  state: Schema.Literals(DeadLetterList.states),
  fingerprint: Schema.String,
  exceptionClass: Schema.String,
  /** Only with `view-payload`. */
  exceptionMessage: optional(Schema.String),
  reason: optional(Schema.String),
  /** The reason in words. Only with `view-payload`. */
  detail: optional(Schema.String),
  /** Where no header says when, and the origin is unknown: when the record was written. */
  deadLettered: optional(Schema.String),
  origin: Schema.Literals(origins),
  /** Where the record was first. Absent, as partition and offset are, where the origin is unknown. */
  originalTopic: optional(Schema.String),
  originalPartition: optional(Schema.Int),
  originalOffset: optional(Schema.String),
  totalAttempts: Schema.Int,
  replayCount: Schema.Int,
  /** The consumer group that dead-lettered it. */
  owner: optional(Schema.String),
  /** As text. Only with `view-payload`. */
  key: optional(Schema.String),
  /** Absent for a tombstone. */
  valueBytes: optional(Schema.Int),
  /** Why its batch cannot be read, in state `unreadable`. */
  unreadable: optional(Schema.String),
  /** The replays of it and the decisions about it, the oldest first. */
  history: Schema.Array(LetterEvent)
})
export type Summary = typeof Summary.Type

/** A page of dead letters, the newest first. */
export const Page = Schema.Struct({
  letters: Schema.Array(Summary),
  /** The cursor `before` of the page that follows. Absent on the last one. */
  next: optional(Schema.String)
})
export type Page = typeof Page.Type

/** A key or a value. */
export const Content = Schema.Struct({
  /** Its size in bytes. Absent when there is none. */
  bytes: optional(Schema.Int),
  /** The bytes as UTF-8 text, as far as 64 KiB of them. Absent where they are none. */
  text: optional(Schema.String),
  /** The bytes in base 64, as far as 64 KiB of them, where they are no text. */
  base64: optional(Schema.String),
  /** The value that today's serde reads, where JSON can hold it. */
  decoded: optional(Schema.Json),
  /** Why today's serde cannot read it. */
  problem: optional(Schema.String)
})
export type Content = typeof Content.Type

/** The parts of a dead letter that hold the record. */
export const Payload = Schema.Struct({
  key: Content,
  value: Content,
  /** All headers, in order. A value that is no text is in base 64. */
  headers: Schema.Array(Schema.Struct({ name: Schema.String, value: optional(Schema.String) })),
  /**
   * Absent where the program has no mask. `applied`: key, value and headers are what its mask shows. `failed`: the mask gave no answer, so all of them are hidden, and the log
   * says why.
   */
  mask: optional(Schema.Literals(["applied", "failed"])),
  /** The causes of the last error, the outermost first. */
  causes: Schema.Array(Schema.Struct({ exceptionClass: Schema.String, message: Schema.String }))
})
export type Payload = typeof Payload.Type

/** One dead letter. */
export const Letter = Schema.Struct({
  ...Summary.fields,
  /** How each tier gave it up. */
  tiers: Schema.Array(Schema.Struct({ tier: Schema.Int, exceptionClass: Schema.String, attempts: Schema.Int })),
  /** The run whose copy it is: the record came back from it. */
  cameBackFrom: optional(Schema.String),
  /** Whether today's serdes can read it. Absent in state `unreadable`. */
  decodable: optional(Schema.Boolean),
  /** Only with `view-payload`, and not in state `unreadable`. */
  payload: optional(Payload)
})
export type Letter = typeof Letter.Type

/** A line of a difference. `-`: it goes. `+`: it comes. A space: it stays. `…`: lines that are left out, in words. */
export const DiffLine = Schema.Struct({ sign: Schema.Literals([" ", "-", "+", "…"]), text: Schema.String })
export type DiffLine = typeof DiffLine.Type

/** The differences between a dead letter and its copy. A part that stays as it is has no lines. */
export const Difference = Schema.Struct({
  key: Schema.Array(DiffLine),
  value: Schema.Array(DiffLine),
  /** A line is `{name}: {value}`. The name of the transform is a header of the copy. */
  headers: Schema.Array(DiffLine),
  /** As that of a payload. `failed`: the mask gave no answer, so no line is shown. */
  mask: optional(Schema.Literals(["applied", "failed"]))
})
export type Difference = typeof Difference.Type

/** The effect of a transform on one dead letter. Nothing is published. */
export const Transformed = Schema.Struct({
  position: Schema.String,
  transform: Schema.String,
  /** The state of the dead letter: a run takes only those that wait. */
  state: Schema.Literals(DeadLetterList.states),
  /** `copied`: a run publishes what the function makes of it. `stays`: the function skips it, fails for it, or makes what the serdes cannot encode. */
  outcome: Schema.Literals(["copied", "stays"]),
  /** Why it stays. Only with `view-payload`. */
  reason: optional(Schema.String),
  /** The parts of the copy whose bytes are others than those of the dead letter. */
  changed: Schema.Array(Schema.Literals(["key", "value", "headers"])),
  /** Whether today's serdes can read the copy. Absent where there is none. */
  decodable: optional(Schema.Boolean),
  /** Of a copy. Only with `view-payload`. */
  difference: optional(Difference)
})
export type Transformed = typeof Transformed.Type

const counts = {
  selected: Schema.Int,
  passes: Schema.Int,
  decodes: Schema.Int,
  undecodable: Schema.Int,
  fails: Schema.Int,
  timedOut: Schema.Int,
  /** Letters that the transform skips, or fails for. */
  stays: Schema.Int,
  skipped: Schema.Int,
  /** Of all but the skipped ones, those that a replay takes only with `ignoreMaxReplays`. */
  exhausted: Schema.Int
}

/** A way in which dead letters would fail. */
export const FailureCount = Schema.Struct({
  exceptionClass: Schema.String,
  /** Only with `view-payload`. */
  message: optional(Schema.String),
  /** Where the records would go, in words. */
  route: Schema.String,
  count: Schema.Int
})
export type FailureCount = typeof FailureCount.Type

/** The verdicts about the dead letters of a group. */
export const GroupVerdict = Schema.Struct({
  fingerprint: Schema.String,
  exceptionClass: Schema.String,
  ...counts,
  failures: Schema.Array(FailureCount)
})
export type GroupVerdict = typeof GroupVerdict.Type

/** The verdict about a dead letter. */
export const LetterVerdict = Schema.Struct({
  position: Schema.String,
  fingerprint: Schema.String,
  verdict: Schema.Literals(["Passes", "Decodes", "Undecodable", "Fails", "TimedOut", "Stays", "Skipped"]),
  /** The class of the error, of `Fails`. */
  exceptionClass: optional(Schema.String),
  /** Where the record would go, in words, of `Fails`. */
  route: optional(Schema.String),
  /** The paths that cannot be decoded, of `Undecodable`, such as `value["price"]`. */
  undecodable: optional(Schema.Array(Schema.String)),
  /** Why a replay would not take it, of `Skipped`: its state, or `refused`. */
  because: optional(Schema.String),
  /** The message of the error, or what the serdes or the transform say. Only with `view-payload`. */
  message: optional(Schema.String)
})
export type LetterVerdict = typeof LetterVerdict.Type

/** The result of a rehearsal. */
export const RehearsalReport = Schema.Struct({
  /** `handler`: the handler was called. `decode`: the binding has no layer for rehearsals, so records were decoded and nothing else. */
  mode: Schema.Literals(["handler", "decode"]),
  /** Whether every selected dead letter has its verdict. */
  complete: Schema.Boolean,
  ...counts,
  groups: Schema.Array(GroupVerdict),
  /** The first 1000. */
  letters: Schema.Array(LetterVerdict),
  /** Records that a transactional handler would have published. */
  published: Schema.Int,
  tookMillis: Schema.Number
})
export type RehearsalReport = typeof RehearsalReport.Type

/** A rehearsal, while it runs and for 15 minutes after its end. */
export const Rehearsal = Schema.Struct({
  /** Names it. */
  id: Schema.String,
  status: Schema.Literals(["running", "done", "failed"]),
  started: Schema.String,
  /** Its result, when it is done. */
  report: optional(RehearsalReport),
  /** The tag of the error, when it has failed. The log has the message. */
  error: optional(Schema.String),
  /** The message of the error. Only with `view-payload`. */
  message: optional(Schema.String)
})
export type Rehearsal = typeof Rehearsal.Type
