/** The processes of the group, and what they have done so far. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import * as Bus from "../bus.ts"
import * as Journal from "../journal.ts"
import * as Program from "../program.ts"
import type { Line } from "./effects.ts"
import { partitions } from "./keyedRecords.ts"

/** Told to `programs/keyedConsumer.ts`. */
export interface Task {
  readonly brokers: ReadonlyArray<string>
  readonly topic: string
  /** The file that it appends to. */
  readonly effects: string
}

const sorted = (pids: ReadonlyArray<number>) => Array.from(new Set(pids)).sort((a, b) => a - b)

/** A topic, and nobody who reads it yet. */
export const make = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>) {
  const topic = Bus.fresh("keyed")
  const { path, entries } = yield* Journal.makeLines<Line>()
  yield* Bus.createTopic(topic, partitions)
  const task: Task = { brokers, topic, effects: path }
  const start = Program.launch(Program.pathOf("keyedConsumer.ts"), JSON.stringify(task))
  const members: Array<Program.Program> = []
  const outputs = () => members.map(({ pid, output }) => `${pid}: ${output().slice(-2_000)}`).join("\n")

  /** The process that each partition was last assigned to. */
  const owners = (): ReadonlyArray<number> => {
    const found = new Map<number, number>()
    for (const line of entries()) {
      if (line._tag === "Assigned") found.set(line.partition, Number.parseInt(line.tenure, 10))
    }
    return Array.from(found.values())
  }
  /** Each member has partitions, all partitions have a member, and records are handled. */
  const works = Effect.suspend(() => {
    const before = entries().length
    const pids = () => sorted(members.flatMap(({ pid }) => pid ?? []))
    const isShared = () => {
      const found = owners()
      return found.length === partitions && sorted(found).join() === pids().join()
    }
    return Bus.until("all members work", () => isShared() && entries().length > before + 100, {
      otherwise: () => [owners(), pids(), outputs()]
    })
  })
  const add = Effect.map(start, (program) => void members.push(program))
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
  return { topic, lines: entries, members, outputs, works, add, leave, replace, owners }
})

export type KeyedGroup = Effect.Success<ReturnType<typeof make>>
