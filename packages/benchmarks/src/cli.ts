/**
 * `pnpm bench <name> [--json] [--rounds n] [--only participant] [--profile folder] [--<parameter> n]`
 *
 * Starts a real Kafka, unless `KAFKA_BROKERS=host:port[,host:port]` names one. Prints a table, or with `--json` one line per measurement.
 * Exits with 1 when a round failed (a record was lost, or came twice); a target that was missed is shown and is not an error.
 */
import { parseArgs } from "node:util"
import { Cause, Effect, Exit } from "effect"
import { benchmarks } from "./benchmarks.ts"
import type { Benchmark } from "./harness/Benchmark.ts"
import { asJsonLines, asTable } from "./harness/report.ts"
import { run } from "./harness/rounds.ts"

const usage = (detail: string): never => {
  console.error(`${detail}\nusage: pnpm bench <${Object.keys(benchmarks).join("|")}> [--json] [--rounds n]`)
  process.exit(2)
}

const [name = "", ...rest] = process.argv.slice(2)
const load = benchmarks[name] ?? usage(name === "" ? "Which benchmark?" : `There is no benchmark called ${name}.`)

const readOptions = (benchmark: Benchmark) => {
  const parameters = Object.keys(benchmark.parameters)
  try {
    return parseArgs({
      args: rest,
      options: {
        json: { type: "boolean", default: false },
        rounds: { type: "string", default: String(benchmark.rounds ?? 3) },
        only: { type: "string", multiple: true, default: [] },
        profile: { type: "string" },
        ...Object.fromEntries(parameters.map((parameter) => [parameter, { type: "string" as const }]))
      }
    }).values
  } catch (error) {
    return usage(String(error))
  }
}

const benchmark = await load()
const { json, rounds, only, profile, ...others } = readOptions(benchmark)
const positive = (option: string, text: unknown): number => {
  const value = Number(text)
  return value > 0 ? value : usage(`--${option} takes a number above 0, not ${text}.`)
}
const exit = await Effect.runPromiseExit(
  run(benchmark, {
    rounds: positive("rounds", rounds),
    overrides: Object.fromEntries(Object.entries(others).map(([option, text]) => [option, positive(option, text)])),
    only: only ?? [],
    profileFolder: profile,
    log: (line) => console.error(line)
  })
)
if (Exit.isSuccess(exit)) console.log(json ? asJsonLines(exit.value) : asTable(benchmark, exit.value))
else {
  console.error(Cause.pretty(exit.cause))
  process.exitCode = 1
}
