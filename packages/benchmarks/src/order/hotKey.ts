/** One key with a million followers: its memory, and how fast it drains. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect } from "effect"
import type { Participant } from "../harness/Benchmark.ts"
import { runBindings } from "../harness/consumers.ts"
import { quantile } from "../harness/rounds.ts"
import { now, pace, since } from "../harness/stopwatch.ts"
import { isRetried, KeyedRecords, ordered, unavailable } from "./keyedRecords.ts"
import type { Parameters } from "./parameters.ts"

const samplesOfDrain = 50

const residentMiB = () => process.memoryUsage().rss / 1024 / 1024

/** The memory that is held behind a full collection, in the heap and outside of it. Resident memory also has garbage, and pages that V8 has not given back. */
const makeLiveMiB = () => {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  return () => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return (heapUsed + external) / 1024 / 1024
  }
}

/**
 * The followers are read and passed while the head waits; then they drain from the source. The live memory has a case of its own: its collections slow the drain down, and make
 * resident memory smaller.
 */
export const hotKey = (of: "resident" | "live"): Participant<Parameters> => ({
  topic: {
    lifetime: "round",
    partitions: 1,
    content: ({ followers, bytes }) => ({ records: followers + 1, keys: 1, bytes })
  },
  role: Effect.fnUntraced(function* (round) {
    const { followers, hotDelayMillis } = round.parameters
    const keyed = new KeyedRecords(followers + 1, 1, hotDelayMillis, (number) => number === 0)
    const memoryMiB = of === "resident" ? residentMiB : makeLiveMiB()
    const samples: Array<number> = []
    const step = Math.ceil(followers / samplesOfDrain)
    let handled = 0
    let began = now()
    let spent = began
    let before = 0
    const binding = ordered(round, hotDelayMillis, (delivery) => {
      if (!keyed.take(delivery)) return unavailable
      if (isRetried(delivery)) {
        before = memoryMiB()
        began = now()
      } else {
        if (++handled % step === 0) samples.push(memoryMiB())
        if (handled === followers) spent = since(began)
      }
      return Effect.void
    })
    yield* Effect.scoped(Effect.andThen(runBindings(round, [binding]), keyed.arrivals.all()))
    yield* keyed.arrivals.pace
    // Live memory goes up and down with the followers that are read ahead: the most counts.
    const last = of === "resident" ? quantile(samples.slice(-10), 0.5) : Math.max(...samples)
    const { overtaken } = yield* keyed.samples
    return { ...pace(spent, followers), overtaken, before: [before], last: [last], growth: [last / before] }
  })
})
