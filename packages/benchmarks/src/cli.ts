/**
 * `pnpm bench <name | all> [--smoke] [--json] [--rounds n] [--only participant] [--profile folder] [--<parameter> n]`
 *
 * `TRANSPORT=kafka` runs the connector's participants on `Kafka.layer` instead of `KafkaJs.layer`.
 *
 * Starts a real Kafka, unless `KAFKA_BROKERS=host:port[,host:port]` names one. Prints a table, or with `--json` one line per measurement. `--smoke` runs each
 * participant once with a tiny load, which shows that it works and measures nothing. Exits with 1 when a round failed (a record was lost, or came
 * twice); a target that was missed is shown and is not an error.
 */
import { parseArgs } from "node:util"
import { Cause, Effect, Exit } from "effect"
import { benchmarks } from "./benchmarks.ts"
import type { Benchmark } from "./harness/Benchmark.ts"
import * as Kafka from "./harness/kafka.ts"
import { asJsonLines, asTable } from "./harness/report.ts"
import { run } from "./harness/rounds.ts"

const usage = (detail: string): never => {
  console.error(
    `${detail}\nusage: pnpm bench <all|${Object.keys(benchmarks).join("|")}> [--smoke] [--json] [--rounds n]`
  )
  process.exit(2)
}

const [name = "", ...rest] = process.argv.slice(2)
const named = name === "all" ? Object.values(benchmarks) : [benchmarks[name]]

const readOptions = (benchmark: Benchmark) => {
  const parameters = Object.keys(benchmark.parameters)
  try {
    return parseArgs({
      args: rest,
      options: {
        smoke: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        rounds: { type: "string" },
        only: { type: "string", multiple: true, default: [] },
        profile: { type: "string" },
        ...Object.fromEntries(parameters.map((parameter) => [parameter, { type: "string" as const }]))
      }
    }).values
  } catch (error) {
    return usage(String(error))
  }
}

const positive = (option: string, text: unknown): number => {
  const value = Number(text)
  return value > 0 ? value : usage(`--${option} takes a number above 0, not ${text}.`)
}

const measure = Effect.fnUntraced(function* (benchmark: Benchmark, brokers: ReadonlyArray<string>) {
  const { smoke, json, rounds, only, profile, ...others } = readOptions(benchmark)
  const given = Object.fromEntries(Object.entries(others).map(([option, text]) => [option, positive(option, text)]))
  const exit = yield* Effect.exit(
    run(benchmark, {
      brokers,
      rounds: rounds === undefined ? (smoke ? 1 : (benchmark.rounds ?? 3)) : positive("rounds", rounds),
      overrides: smoke ? { ...benchmark.smoke, ...given } : given,
      only: only ?? [],
      profileFolder: profile,
      log: (line) => console.error(line)
    })
  )
  if (Exit.isSuccess(exit)) {
    if (smoke) console.log(`bench ${benchmark.name}: works`)
    else console.log(json ? asJsonLines(exit.value) : asTable(benchmark, exit.value))
    return
  }
  console.error(`bench ${benchmark.name}: ${Cause.pretty(exit.cause)}`)
  process.exitCode = 1
})

const loaded: Array<Benchmark> = []
for (const load of named) {
  loaded.push(await (load ?? usage(name === "" ? "Which benchmark?" : `There is no benchmark called ${name}.`))())
}
for (const benchmark of loaded) readOptions(benchmark)
const exit = await Effect.runPromiseExit(
  Effect.scoped(
    Effect.flatMap(Kafka.brokers, (brokers) =>
      Effect.forEach(loaded, (benchmark) => measure(benchmark, brokers), { discard: true })
    )
  )
)
if (Exit.isFailure(exit)) {
  console.error(Cause.pretty(exit.cause))
  process.exitCode = 1
}
