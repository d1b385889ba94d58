/** The processes of the group, and what they have done so far. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import * as Bus from "../bus.ts"
import * as Journal from "../journal.ts"
import * as Program from "../program.ts"
import { type Line, partitionOf, pidOf, type Tenure } from "./effects.ts"
import { sessionMillis } from "./keyedBinding.ts"
import { partitions } from "./keyedRecords.ts"

/** Told to `programs/keyedConsumer.ts`. */
export interface Task {
  readonly brokers: ReadonlyArray<string>
  readonly topic: string
  /** The file that it appends to. */
  readonly effects: string
}

/** A topic, and nobody who reads it yet. */
export const make = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>) {
  const topic = Bus.fresh("keyed")
  const { path, entries } = yield* Journal.makeLines<Line>()
  yield* Bus.createTopic(topic, partitions)
  const task: Task = { brokers, topic, effects: path }
  const start = Program.launch(Program.pathOf("keyedConsumer.ts"), JSON.stringify(task))
  const members: Array<Program.Program> = []
  const outputs = () => members.map(({ pid, output }) => `${pid}: ${output().slice(-2_000)}`).join("\n")

  /** By partition: its newest owner, and whether that has begun to handle records. */
  const owners = new Map<number, { readonly tenure: Tenure; readonly hasBegun: boolean }>()
  let read = 0
  const look = () => {
    const all = entries()
    for (; read < all.length; read++) {
      const line = all[read]!
      if (line._tag === "Assigned") owners.set(line.partition, { tenure: line.tenure, hasBegun: false })
      else if (owners.get(partitionOf(line.place))?.tenure === line.tenure) {
        owners.set(partitionOf(line.place), { tenure: line.tenure, hasBegun: true })
      }
    }
    return Array.from(owners.values())
  }
  const owns = ({ pid }: Program.Program) => look().some(({ tenure }) => pidOf(tenure) === pid)
  /** Each partition has an owner that has begun and lives, and each member owns some. */
  const isShared = () => {
    const found = look()
    const pids = new Set(found.map(({ tenure }) => pidOf(tenure)))
    return (
      found.length === partitions &&
      found.every(({ hasBegun }) => hasBegun) &&
      pids.size === members.length &&
      members.every(owns)
    )
  }
  const state = () => [look(), members.map(({ pid }) => pid), outputs()]
  const works = Bus.until("all members work", isShared, { otherwise: state })
  /** All members work, and do so for as long as some records are handled and some keys are parked. */
  const goesOn = Effect.suspend(() => {
    const from = entries().length
    const more = Bus.until("records are handled", () => entries().length > from + 300, { otherwise: state })
    return Effect.andThen(works, more)
  })
  /** Members join until there are so many. */
  const grow = Effect.fnUntraced(function* (count: number) {
    while (members.length < count) members.push(yield* start)
    yield* goesOn
  })
  /** One leaves as a deployment tells it to. */
  const leave = (index: number) =>
    Effect.gen(function* () {
      const [member] = members.splice(index, 1)
      assert.deepStrictEqual(yield* member!.end("SIGTERM"), { code: 130, signal: null }, member!.output())
    })
  /** One dies, and another one starts in its place at once. */
  const replace = (index: number) =>
    Effect.gen(function* () {
      const victim = members[index]!
      assert.strictEqual((yield* victim.end("SIGKILL")).signal, "SIGKILL", victim.output())
      members[index] = yield* start
    })
  /** One is suspended until its session is over and others work on all partitions, and wakes again. */
  const suspend = (index: number) =>
    Effect.gen(function* () {
      const member = members[index]!
      yield* member.signal("SIGSTOP")
      yield* Effect.sleep(sessionMillis)
      yield* Bus.until("others have its partitions", () => !owns(member), { otherwise: state })
      // They are far ahead when it wakes.
      yield* Effect.sleep("1 second")
      yield* member.signal("SIGCONT")
      yield* goesOn
    })
  return { topic, lines: entries, members, outputs, goesOn, grow, leave, replace, suspend }
})

export type KeyedGroup = Effect.Success<ReturnType<typeof make>>
