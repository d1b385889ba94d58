/**
 * How long an operator waits for groups, pages and a rehearsal of many dead letters, on a Kafka whose groups wait for their first members as long as Kafka's default says; and that
 * a heap of 96 MB is enough for all of it.
 *
 * `LETTERS` sets how many there are: 2000 by default, whose times nobody judges. When it is set, the figures are printed, and those of a process with Node's own heap are held to
 * their bounds. In a small heap V8 keeps a new space that is nearly as large, and spends most of the time on collections.
 */
import { loadavg } from "node:os"
import { assert } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Letters from "./letters.ts"
import * as Program from "./program.ts"

const letters = Number(process.env["LETTERS"] ?? 2_000)
const isMeasured = process.env["LETTERS"] !== undefined
const partitions = 5
const groups = 40
const perBatch = 1_000

/** With 2 KiB of headers, as a failed handler leaves them. */
const letterOf = (topic: string, index: number) =>
  Letters.letterOf(
    topic,
    { index, partition: index % partitions, value: Bus.bytes(`{"order":${index}}`) },
    {
      "last-exception-class": `Down${index % groups}`,
      "last-exception-stacktrace": `Down\n    at charge (/app/src/charge${index % groups}.js:1:1)\n${"    at run (/app/node_modules/x/y.js:1:1)\n".repeat(40)}`,
      "last-exception-fingerprint": `v1-${String(index % groups).padStart(16, "0")}`
    }
  )

/** Milliseconds of the clock, and of all processors. A machine that is busy with something else needs longer, and computes as much. */
interface Cost {
  readonly millis: number
  readonly cpu: number
}

interface Told {
  readonly found: number
  readonly counted: number
  readonly shown: number
  readonly replayed: number
  readonly selected: number
  readonly passes: number
  readonly groups: Cost
  readonly pages: ReadonlyArray<Cost>
  readonly read: Cost
  readonly rehearsal: Cost
  readonly megabytes: number
}

const median = (values: ReadonlyArray<number>) => [...values].sort((one, other) => one - other)[values.length >> 1]!

const figuresOf = (kind: keyof Cost, { groups, pages, read, rehearsal }: Told) => ({
  ...{ groupsCold: groups[kind], firstPage: pages[0]![kind], page: median(pages.map((each) => each[kind])) },
  ...{ read: read[kind], rehearsalAfterReading: rehearsal[kind] - read[kind] }
})

const show = (when: string, told: Told) => {
  if (!isMeasured) return
  const { megabytes } = told
  console.log({ letters, when, ...figuresOf("millis", told), cpu: figuresOf("cpu", told), megabytes, load: loadavg() })
}

const judge = (told: Told) => {
  if (!isMeasured) return
  const { groupsCold, page, rehearsalAfterReading } = figuresOf("millis", told)
  assert.isBelow(groupsCold, 2_000)
  assert.isBelow(page, 100)
  assert.isBelow(rehearsalAfterReading, 1_000)
}

const publish = Effect.fnUntraced(function* (topic: string) {
  for (let from = 0; from < letters; from += perBatch) {
    const count = Math.min(perBatch, letters - from)
    yield* Bus.publish(Array.from({ length: count }, (_, index) => letterOf(topic, from + index)))
  }
})

const smallHeap = ["--max-old-space-size=96"]

/** A new process. */
const read = Effect.fnUntraced(function* (
  bootstrap: ReadonlyArray<string>,
  topic: string,
  nodeOptions: ReadonlyArray<string> = []
) {
  const task = JSON.stringify({ brokers: bootstrap, topic })
  const program = yield* Program.launch(Program.pathOf("letterReader.ts"), task, nodeOptions)
  assert.deepStrictEqual(yield* program.exit, { code: 0, signal: null }, program.output())
  return JSON.parse(program.output().trim()) as Told
})

/** Reads in a heap of 96 MB, and in one of Node's own size, whose answers count. */
const look = Effect.fnUntraced(function* (
  when: string,
  bootstrap: ReadonlyArray<string>,
  topic: string,
  expected: Partial<Told>
) {
  const small = yield* read(bootstrap, topic, smallHeap)
  show(`${when}, in a heap of 96 MB`, small)
  assert.deepInclude(small, expected)
  const told = yield* read(bootstrap, topic)
  show(when, told)
  assert.deepInclude(told, expected)
  return told
})

/** Publishes all letters again, so that the journal tells of each. */
const replayAll = Effect.fnUntraced(function* (topic: string) {
  const binding = Binding.make("letters", {
    ...{ topic, groupId: topic, value: Serde.string, autoStartup: false },
    handler: () => Effect.void
  })
  const runs = yield* Binding.runs(binding)
  const plan = yield* runs.plan({
    ...{ action: "replay", select: { all: true }, reason: "figures", rate: 100_000, canary: 0, stopAbove: 100 }
  })
  yield* runs.apply(plan.id)
})

KafkaSuite.own(
  "many dead letters, on a Kafka with its default rebalance delay",
  { config: { "group.initial.rebalance.delay.ms": "3000" } },
  (it) => {
    it.effect(
      `OPS-01 OPS-03 OPS-05 ${letters} are grouped, listed and rehearsed in a heap of 96 MB, before and after all were published again`,
      () =>
        Effect.gen(function* () {
          const { bootstrap } = yield* RealKafka.RealKafka
          const story = Effect.gen(function* () {
            const topic = Bus.fresh("letters")
            for (const name of [topic, `${topic}.DLT`]) yield* Bus.createTopic(name, partitions)
            yield* publish(topic)
            const counts = { found: groups, counted: letters, shown: Math.min(1_000, letters) }
            const whole = { ...counts, replayed: 0, selected: letters, passes: letters }
            const first = yield* look("at first", bootstrap, topic, whole)
            yield* replayAll(topic)
            const then = yield* look("after a run over all", bootstrap, topic, {
              ...counts,
              replayed: counts.shown,
              passes: 0
            })
            judge(first)
            judge(then)
          })
          yield* Bus.on({ brokers: bootstrap }, story)
        }),
      600_000
    )
  }
)
