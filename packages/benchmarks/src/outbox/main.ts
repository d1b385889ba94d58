/**
 * `node packages/benchmarks/src/outbox/main.ts <drain|latency|write> [rounds] [size]`: the outbox on PostgreSQL against bare loops, in
 * turn, medians. `size` is rows, events or transactions.
 */
import { Effect, Logger } from "effect"
import { drain } from "./drain.ts"
import { hotPath, wokenUp } from "./latency.ts"
import { median } from "./setup.ts"
import { writeCost } from "./writeCost.ts"

const [what = "drain", rounds = "3", size] = process.argv.slice(2)

const times = <A>(one: Effect.Effect<A, unknown>) => Effect.all(Array.from({ length: Number(rounds) }, () => one))

const runs: Readonly<Record<string, Effect.Effect<void, unknown>>> = {
  drain: Effect.gen(function* () {
    const results = new Map<string, Array<number>>()
    for (let round = 0; round < Number(rounds); round++) {
      for (const [name, measure] of Object.entries(drain(Number(size ?? 100_000)))) {
        results.set(name, [...(results.get(name) ?? []), yield* measure])
      }
    }
    for (const [name, values] of results) console.log(`${name.padEnd(52)} ${median(values)} events/s`)
  }),
  latency: Effect.gen(function* () {
    for (const [name, measure] of Object.entries({ "hot path": hotPath, "another process": wokenUp })) {
      const all = yield* times(measure(Number(size ?? 1000)))
      const [p50, p99] = [median(all.map((q) => q.p50)), median(all.map((q) => q.p99))]
      console.log(`${name.padEnd(20)} p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`)
    }
  }),
  write: Effect.gen(function* () {
    const all = yield* times(writeCost(Number(size ?? 5000)))
    const ratio = median(all.map(({ plain, event }) => plain / event))
    console.log(
      `plain ${median(all.map((r) => r.plain))} tx/s, event ${median(all.map((r) => r.event))} tx/s, ratio ${ratio.toFixed(2)}`
    )
  })
}

await Effect.runPromise((runs[what] ?? Effect.fail(`unknown: ${what}`)).pipe(Effect.provide(Logger.layer([]))))
