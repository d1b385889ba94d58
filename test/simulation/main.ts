/**
 * `pnpm sim --seeds N [--from S] [--workers W] [--kind order] [--history]` simulates N seeds from S on (default: a fresh seed, which is printed) on all cores. It
 * exits with 1 and a report of the first seed that broke a rule; with `--history` the report begins at the first step. `--kind order` draws bindings that keep the order of
 * each key through retry topics.
 */
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { describeRun, type Extent } from "./report.ts"
import { simulate } from "./run/simulate.ts"
import { generate } from "./scenario/generate.ts"
import { drawOrder } from "./scenario/generateOrder.ts"
import type { Scenario } from "./scenario/Scenario.ts"

/** A worker's report about one seed. */
interface Report {
  readonly seed: number
  readonly steps: number
  /** Undefined when no rule was broken. */
  readonly text: string | undefined
}

interface Share {
  readonly from: number
  readonly seeds: number
  readonly step: number
  readonly extent: Extent
  readonly kind: Kind
}

type Kind = "all" | "order"

const draw: Readonly<Record<Kind, (seed: number) => Scenario>> = { all: generate, order: drawOrder }

const work = ({ from, seeds, step, extent, kind }: Share): void => {
  for (let seed = from; seed < from + seeds; seed += step) {
    const outcome = simulate(draw[kind](seed))
    const text = outcome.violation === undefined ? undefined : describeRun(outcome, extent)
    parentPort?.postMessage({ seed, steps: outcome.history.length, text } satisfies Report)
  }
}

const wholeNumber = (name: string, text: string, least: number): number => {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= least) return value
  console.error(`--${name} is '${text}'; a whole number, ${least} or more, is allowed.`)
  process.exit(2)
}

const readOptions = () => {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string" },
      from: { type: "string" },
      workers: { type: "string" },
      kind: { type: "string" },
      history: { type: "boolean" }
    }
  })
  const extent: Extent = values.history === true ? "whole" : "recent"
  const kind: Kind = values.kind === "order" ? "order" : "all"
  return {
    extent,
    kind,
    seeds: wholeNumber("seeds", values.seeds ?? "500", 1),
    from: wholeNumber("from", values.from ?? String(Date.now() % 1_000_000_000), 0),
    workers: wholeNumber("workers", values.workers ?? String(availableParallelism()), 1)
  }
}

/** Memory for the objects of one run, in each worker. */
const youngMegabytes = 192

const headline = (text: string): string => text.slice(0, text.indexOf("\n"))

const main = async (): Promise<void> => {
  const { seeds, from, workers, extent, kind } = readOptions()
  console.log(`Simulating ${seeds} seeds from ${from} on ${Math.min(workers, seeds)} workers.`)
  const began = performance.now()
  const failed: Array<Report> = []
  let done = 0
  let steps = 0
  const perMinute = (): number => Math.round((done * 60_000) / (performance.now() - began))
  const note = (report: Report): void => {
    done++
    steps += report.steps
    if (report.text !== undefined) {
      failed.push(report)
      console.log(headline(report.text))
    }
    if (done % 500 === 0) console.log(`${done} seeds, ${failed.length} failed, ${perMinute()} per minute`)
  }
  await Promise.all(
    Array.from({ length: Math.min(workers, seeds) }, (_, index) => {
      const step = Math.min(workers, seeds)
      const workerShare: Share = { from: from + index, seeds: seeds - index, step, extent, kind }
      const worker = new Worker(new URL(import.meta.url), {
        workerData: workerShare,
        // A run leaves nothing behind: with much room for the young most of it dies there.
        resourceLimits: { maxYoungGenerationSizeMb: youngMegabytes }
      })
      worker.on("message", note)
      return new Promise<void>((resolve, reject) => {
        worker.on("error", reject)
        worker.on("exit", () => resolve())
      })
    })
  )
  console.log(`${done} seeds, ${failed.length} failed, ${steps} steps, ${perMinute()} seeds per minute.`)
  failed.sort((a, b) => a.seed - b.seed)
  const [first] = failed
  if (first === undefined) return
  console.log(`\n${first.text}`)
  process.exitCode = 1
}

if (isMainThread) await main()
else work(workerData as Share)
