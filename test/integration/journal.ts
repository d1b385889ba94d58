/** Instructions for a consumer program, and the journal that it writes. */
import { closeSync, openSync, readSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"

const Settings = Schema.Struct({
  ackMode: Schema.optionalKey(Schema.Literals(["MANUAL", "MANUAL_IMMEDIATE"])),
  processingOrder: Schema.optionalKey(Schema.Literals(["partition", "key", "unordered"])),
  staticMembership: Schema.optionalKey(Schema.Boolean),
  sessionTimeout: Schema.optionalKey(Schema.Int),
  heartbeatInterval: Schema.optionalKey(Schema.Int),
  shutdownTimeout: Schema.optionalKey(Schema.Int),
  missingTopics: Schema.optionalKey(Schema.Literals(["create", "wait"]))
})

const Task = Schema.Struct({
  brokers: Schema.Array(Schema.String),
  /** The file that it appends to. */
  journal: Schema.String,
  name: Schema.String,
  topic: Schema.String,
  groupId: Schema.String,
  /** How long the handler sleeps. */
  handlerMillis: Schema.Int,
  /** The value at which the handler blocks the event loop, the first time that it gets it. */
  blocksAt: Schema.optionalKey(Schema.String),
  blockMillis: Schema.Int,
  /** The value that the handler always fails for. */
  failsAt: Schema.optionalKey(Schema.String),
  /** Where it kills itself: in front of, or behind, its nth publish to a topic, or commit of one; or when a partition of the topic begins to wait. */
  diesAt: Schema.optionalKey(
    Schema.Struct({
      point: Schema.Literals(["publish", "acknowledged", "commit", "committed", "delay"]),
      topic: Schema.String,
      nth: Schema.Int
    })
  ),
  settings: Settings,
  /** The topics of the fleet that the process belongs to. */
  fleet: Schema.optionalKey(Schema.Struct({ controlTopic: Schema.String, fleetTopic: Schema.String }))
})
export type Task = typeof Task.Type

const TaskJson = Schema.fromJsonString(Task)
export const decodeTask = Schema.decodeUnknownSync(TaskJson)
export const encodeTask = Schema.encodeSync(TaskJson)

/** Records by their coordinates; a program's own events by their partition. */
export type Entry =
  | {
      readonly _tag: "Started" | "Done"
      readonly partition: number
      readonly offset: number
      readonly value: string
      /** Set by programs that read several topics. */
      readonly topic?: string
    }
  | { readonly _tag: "PartitionAssigned" | "PartitionReleased" | "PartitionLost"; readonly partition: number }

export type Handled = Extract<Entry, { readonly _tag: "Started" | "Done" }>

export interface Journal extends Lines<Entry> {
  readonly started: () => ReadonlyArray<Handled>
  readonly done: () => ReadonlyArray<Handled>
}

/** A file of JSON lines that processes append to. */
export interface Lines<E> {
  readonly path: string
  readonly entries: () => ReadonlyArray<E>
}

/** An empty file of lines; it is gone with the Scope. */
export const makeLines = Effect.fnUntraced(function* <E>() {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "eventbus-journal-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
  )
  const path = join(folder, "journal.jsonl")
  const file = yield* Effect.acquireRelease(
    Effect.sync(() => openSync(path, "a+")),
    (open) => Effect.sync(() => closeSync(open))
  )
  const buffer = Buffer.alloc(1024 * 1024)
  const read: Array<E> = []
  let position = 0
  const entries = (): ReadonlyArray<E> => {
    while (true) {
      const length = readSync(file, buffer, 0, buffer.length, position)
      const end = buffer.subarray(0, length).lastIndexOf("\n") + 1
      if (end === 0) return read
      position += end
      for (const line of buffer.toString("utf8", 0, end - 1).split("\n")) read.push(JSON.parse(line))
    }
  }
  const lines: Lines<E> = { path, entries }
  return lines
})

/** An empty journal; it is gone with the Scope. */
export const make = Effect.gen(function* () {
  const { path, entries } = yield* makeLines<Entry>()
  const of = (tag: Handled["_tag"]) => () => entries().filter((entry): entry is Handled => entry._tag === tag)
  const journal: Journal = { path, entries, started: of("Started"), done: of("Done") }
  return journal
})

const place = ({ partition, offset }: Handled) => `${partition}/${offset}`

/** Records that occur more than once. */
export const repeated = (records: ReadonlyArray<Handled>): ReadonlyArray<string> => {
  const seen = new Set<string>()
  const again = new Set<string>()
  for (const record of records) (seen.has(place(record)) ? again : seen).add(place(record))
  return Array.from(again)
}

/** Offsets below the committed ones that are not among these records: committed, and not handled. */
export const committedUnhandled = (
  committed: ReadonlyMap<number, bigint>,
  records: ReadonlyArray<Handled>
): ReadonlyArray<string> => {
  const handled = new Set(records.map(place))
  const wrong: Array<string> = []
  for (const [partition, end] of committed) {
    for (let offset = 0; offset < Number(end); offset++) {
      if (!handled.has(`${partition}/${offset}`)) wrong.push(`${partition}/${offset}`)
    }
  }
  return wrong
}
