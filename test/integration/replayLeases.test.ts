/** Two processes replay the dead letters of one group at once, and one of them is killed (kill -9) in the middle. */
import { assert } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import * as Bus from "./bus.ts"
import * as Program from "./program.ts"

const letters = 6_000
const partitions = 2

const setUp = Effect.fnUntraced(function* (bootstrap: ReadonlyArray<string>, config: Readonly<Record<string, string>>) {
  const topic = Bus.fresh("leases")
  yield* Bus.createTopic(topic, partitions)
  yield* Bus.createTopic(`${topic}.DLT`, partitions)
  if (Object.keys(config).length > 0) yield* Bus.createTopic(`${topic}.DLT.replays`, 1, config)
  yield* Bus.publish(Bus.numbered(`${topic}.DLT`, partitions, letters))
  const start = Program.launch(Program.pathOf("replayer.ts"), JSON.stringify({ brokers: bootstrap, topic }))
  const copies = Effect.map(Bus.readAll(topic), (records) => records.map(({ value }) => Number(Bus.text(value))))
  /** How a process ended, in its own words. */
  const told = Effect.fnUntraced(function* (program: Program.Program) {
    yield* program.exit
    return JSON.parse(program.output().trim()) as { readonly replayed: number; readonly _tag?: string }
  })
  const some = (count: number) =>
    Bus.until(
      `${count} copies are published`,
      Effect.map(Bus.logEnds(topic), (ends) => [...ends.values()].reduce((sum, end) => sum + Number(end), 0) >= count)
    )
  return { start, copies, told, some }
})

const sorted = (numbers: ReadonlyArray<number>) => [...numbers].sort((a, b) => a - b)
const all = Array.from({ length: letters }, (_, index) => index)

KafkaSuite.shared("replays of two processes", (bootstrap) => {
  for (const [name, config] of [
    ["a new journal", {}],
    ["a journal of an older version", { "cleanup.policy": "compact" }]
  ] as const) {
    Bus.story(bootstrap, `OPS-10 the second waits for the first, and both tell their counts (${name})`, () =>
      Effect.gen(function* () {
        const { start, copies, told, some } = yield* setUp(bootstrap, config)
        const first = yield* start
        yield* some(1)
        const second = yield* start
        const counts = yield* Effect.forEach([first, second], told)
        // On a slow machine the first takes longer than the second waits: then it has all, and the second says so.
        for (const { _tag } of counts) assert.include([undefined, "ReplayRunning"], _tag)
        const own = counts.map(({ _tag, replayed }) => (_tag === undefined ? replayed : 0))
        assert.strictEqual(own[0]! + own[1]!, letters)
        assert.deepStrictEqual(sorted(yield* copies), all)
      })
    )

    Bus.story(bootstrap, `OPS-10 one is killed, the other finishes: each letter is copied once (${name})`, () =>
      Effect.gen(function* () {
        const { start, copies, told, some } = yield* setUp(bootstrap, config)
        const first = yield* start
        yield* some(500)
        const second = yield* start
        yield* Effect.sleep("300 millis")
        assert.strictEqual((yield* first.end("SIGKILL")).signal, "SIGKILL", "it was over before it could be killed")
        const ended = yield* told(second)
        assert.isUndefined(ended._tag)
        const copied = yield* copies
        assert.deepStrictEqual(sorted(copied), all)
        assert.isTrue(ended.replayed > 0 && ended.replayed < letters)
      })
    )
  }
})
