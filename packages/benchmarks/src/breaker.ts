/** The cost of a closed circuit breaker per call, and the delay of the first call after the breaker was open. */
import { CircuitBreaker } from "@eventbus/core"
import { Effect } from "effect"
import { make, medianAtMost, type TopicPlan } from "./harness/Benchmark.ts"
import { now, since } from "./harness/stopwatch.ts"

type Parameters = Readonly<Record<"calls" | "openings", number>>

const topic: TopicPlan<Parameters> = { lifetime: "run", partitions: 1 }
const waitMillis = 200

/** One permit and one outcome per call, as a binding uses the breaker for each delivery. */
const closed = Effect.fnUntraced(function* ({ calls }: Parameters) {
  const breaker = yield* CircuitBreaker.make()
  const pass = (count: number) => {
    for (let call = 0; call < count; call++) {
      const permit = breaker.tryAcquireUnsafe(call)
      if (permit === undefined) throw new Error("a closed breaker refused a call")
      breaker.recordUnsafe(permit, call % 10 === 0 ? "failure" : "success", 1, call)
    }
  }
  pass(100_000)
  const start = now()
  pass(calls)
  return { micros: [(since(start).millis * 1_000) / calls] }
}, Effect.scoped)

/** Opens the breaker repeatedly, and measures the time from the end of its wait to the first permitted call. */
const opened = Effect.fnUntraced(function* ({ openings }: Parameters) {
  const late: Array<number> = []
  const breaker = yield* CircuitBreaker.make({
    ...{ slidingWindowSize: 1, minimumNumberOfCalls: 1, permittedNumberOfCallsInHalfOpenState: 1 },
    waitDurationInOpenState: waitMillis
  })
  for (let opening = 0; opening < openings; opening++) {
    yield* Effect.exit(breaker.protect(Effect.fail("down")))
    const { nextProbeAtMillis } = yield* breaker.snapshot
    if (nextProbeAtMillis === undefined) return yield* Effect.fail("a failing call did not open the breaker")
    while (breaker.stateUnsafe() === "OPEN") yield* Effect.sleep(1)
    late.push(Date.now() - nextProbeAtMillis)
  }
  return { late }
}, Effect.scoped)

export const breaker = make({
  name: "breaker",
  header: [
    "closed: permit and outcome of 5,000,000 calls, one in ten fails, the default window of 100 calls",
    "open: 20 times open for 200 ms; from the end of that to the first call that is let through"
  ],
  parameters: { calls: 5_000_000, openings: 20 },
  smoke: { calls: 10_000, openings: 2 },
  participants: {
    closed: { topic, role: ({ parameters }) => closed(parameters) },
    open: { topic, role: ({ parameters }) => opened(parameters) }
  },
  measures: [
    { participant: "closed", series: "micros", unit: "µs/call", target: medianAtMost(0.5) },
    {
      participant: "open",
      series: "late",
      quantile: 0.99,
      label: "first call p99",
      unit: "ms",
      target: medianAtMost(50)
    }
  ]
})
