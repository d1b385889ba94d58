/** Publishing a number of records, counted afterwards: shared by the benchmarks that publish. */
import { Effect, type Scope } from "effect"
import type { Participant, TopicPlan } from "./Benchmark.ts"
import { countRecords } from "./kafka.ts"
import { now, pace, since } from "./stopwatch.ts"

/** The load of one round. */
export type Parameters = Readonly<Record<"singles" | "batched" | "warmup" | "concurrency" | "batch" | "bytes", number>>

const topic: TopicPlan<Parameters> = { lifetime: "round", partitions: 6 }

interface Work {
  readonly topic: string
  readonly bytes: number
  /** Publishes the records with these numbers in one call of the client. */
  readonly call: (numbers: ReadonlyArray<number>) => Effect.Effect<unknown, unknown>
}

/** Publishes numbers `from` to `to` in calls of `size`, `concurrency` of them at once. */
const publishAll = (work: Work, from: number, to: number, size: number, concurrency: number) => {
  let next = from
  const worker = Effect.whileLoop({
    while: () => next < to,
    body: () => {
      const numbers = Array.from({ length: Math.min(size, to - next) }, (_, index) => next + index)
      next += numbers.length
      return work.call(numbers)
    },
    step: () => {}
  })
  return Effect.all(
    Array.from({ length: concurrency }, () => worker),
    { concurrency: "unbounded", discard: true }
  )
}

/** A participant that publishes by the calls of `connect`: one by one, `concurrency` at once, or in batches one after the other. */
export const participant = (
  calls: "single" | "batch",
  connect: (
    brokers: ReadonlyArray<string>,
    topic: string,
    bytes: number
  ) => Effect.Effect<Work["call"], unknown, Scope.Scope>
): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* ({ brokers, topic, parameters }) {
    const { bytes, warmup } = parameters
    const records = calls === "single" ? parameters.singles : parameters.batched
    const size = calls === "single" ? 1 : parameters.batch
    const concurrency = calls === "single" ? parameters.concurrency : 1
    const work = { topic, bytes, call: yield* connect(brokers, topic, bytes) }
    yield* publishAll(work, 0, warmup, size, concurrency)
    const start = now()
    yield* publishAll(work, warmup, warmup + records, size, concurrency)
    const spent = since(start)
    const written = yield* countRecords(brokers, topic)
    if (written !== warmup + records) return yield* Effect.fail(`${written} of ${warmup + records} records written`)
    return pace(spent, records)
  }, Effect.scoped)
})
