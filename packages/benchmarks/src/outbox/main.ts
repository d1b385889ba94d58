/** `node packages/benchmarks/src/outbox/main.ts [rounds] [rows]`: the outbox against bare loops, in turn, medians. */
import { Effect, Logger } from "effect"
import { drain } from "./drain.ts"
import { median } from "./setup.ts"

const [rounds = 3, rows = 100_000] = process.argv.slice(2).map(Number)

const program = Effect.gen(function* () {
  const results = new Map<string, Array<number>>()
  for (let round = 0; round < rounds; round++) {
    for (const [name, measure] of Object.entries(drain(rows))) {
      const eventsPerSecond = yield* measure
      results.set(name, [...(results.get(name) ?? []), eventsPerSecond])
    }
  }
  for (const [name, values] of results) console.log(`${name.padEnd(52)} ${median(values).toLocaleString("en").padStart(9)} /s`)
})

await Effect.runPromise(program.pipe(Effect.provide(Logger.layer([]))))
