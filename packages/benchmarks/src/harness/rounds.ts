/** Runs a benchmark round by round, and turns its samples into measurements. */
import { randomBytes } from "node:crypto"
import { Effect, Scope } from "effect"
import type { Benchmark, Measure, Parameters, ProcessFailed, Samples, Target, TopicPlan } from "./Benchmark.ts"
import * as Kafka from "./kafka.ts"
import * as Processes from "./processes.ts"

export interface RunOptions {
  readonly brokers: ReadonlyArray<string>
  /** Options of a run. */
  readonly rounds: number
  readonly overrides: Parameters
  /** Runs only these participants; empty means all. Measures that need others are left out. */
  readonly only: ReadonlyArray<string>
  readonly profileFolder: string | undefined
  readonly log: (line: string) => void
}

/** One figure. `against` and `ratio` are null for a participant without an opponent. */
export interface Measurement {
  readonly bench: string
  readonly case: string
  readonly unit: string
  readonly rounds: number
  readonly median: number
  readonly against: string | null
  readonly ratio: number | null
}

export interface Judged {
  readonly measurement: Measurement
  readonly target: Target | undefined
  /** Undefined without a target. */
  readonly met: boolean | undefined
}

/** The samples of each participant, round by round. */
type Results = ReadonlyMap<string, ReadonlyArray<Samples>>

/** Fails when a round fails, since a figure must not be paid for with a lost record. */
export const run: (benchmark: Benchmark, options: RunOptions) => Effect.Effect<ReadonlyArray<Judged>, ProcessFailed> =
  Effect.fnUntraced(function* (benchmark, options) {
    const { brokers } = options
    const runName = `bench-${benchmark.name}-${randomBytes(4).toString("hex")}`
    const kept = new Map<TopicPlan<Parameters>, string>()
    let made = 0

    const makeTopic = Effect.fnUntraced(function* (plan: TopicPlan<Parameters>) {
      const topic = `${runName}-${++made}`
      const content = plan.content?.(options.overrides)
      yield* Effect.acquireRelease(Kafka.createTopic(brokers, topic, plan.partitions), () =>
        Kafka.deleteTopic(brokers, topic)
      )
      if (content !== undefined) {
        options.log(`writing ${content.records} records of ${content.bytes} bytes`)
        const { codec } = content
        yield* codec === undefined
          ? Kafka.fill(brokers, topic, plan.partitions, content)
          : Kafka.fillInCodec(brokers, topic, plan.partitions, content, codec)
      }
      return topic
    })

    const scope = yield* Effect.scope
    const topicOf = (plan: TopicPlan<Parameters>) =>
      Effect.gen(function* () {
        if (plan.lifetime === "round") return yield* makeTopic(plan)
        const topic = kept.get(plan) ?? (yield* Effect.provideService(makeTopic(plan), Scope.Scope, scope))
        kept.set(plan, topic)
        return topic
      })

    const runRound = (name: string, plan: TopicPlan<Parameters>, round: number) =>
      Effect.gen(function* () {
        const topic = yield* topicOf(plan)
        const groupId = `${runName}-${name.replaceAll(" ", "-")}-${round}`
        const input = { brokers, topic, groupId, overrides: options.overrides }
        const { samples } = yield* Processes.start(benchmark.name, name, input, options.profileFolder)
        return yield* samples
      }).pipe(Effect.scoped)

    const results = new Map<string, Array<Samples>>()
    const participants = [...benchmark.participants].filter(
      ([name]) => options.only.length === 0 || options.only.includes(name)
    )
    for (let round = 0; round < options.rounds; round++) {
      // The first participant changes from round to round.
      const first = round % Math.max(1, participants.length)
      for (const [name, { topic }] of [...participants.slice(first), ...participants.slice(0, first)]) {
        const samples = yield* runRound(name, topic, round)
        results.set(name, [...(results.get(name) ?? []), samples])
        options.log(`round ${round + 1} of ${options.rounds}: ${name} ${describeSamples(samples)}`)
      }
    }
    return measure(benchmark, results)
  }, Effect.scoped)

const describeSamples = (samples: Samples): string =>
  Object.entries(samples)
    .map(([series, values]) => `${series} ${quantile(values, 0.5).toPrecision(4)}`)
    .join(", ")

export const quantile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const position = (sorted.length - 1) * share
  const below = sorted[Math.floor(position)] ?? Number.NaN
  const above = sorted[Math.ceil(position)] ?? Number.NaN
  return below + (above - below) * (position - Math.floor(position))
}

const measure = (benchmark: Benchmark, results: Results): ReadonlyArray<Judged> => {
  const takesPart = benchmark.measures.filter(({ participant }) => results.has(participant))
  const medianOf = (name: string, measure: Measure): number =>
    quantile(
      (results.get(name) ?? []).map((samples) => quantile(samples[measure.series] ?? [], measure.quantile ?? 0.5)),
      0.5
    )
  const lines = new Map<string, Judged>()
  const add = (name: string, measure: Measure, target?: Target): void => {
    const { against, unit } = measure
    const median = medianOf(name, measure)
    const ratio = against === undefined ? null : ratioOf(median, medianOf(against, measure))
    const measurement: Measurement = {
      bench: benchmark.name,
      case: measure.label === undefined ? name : `${name} ${measure.label}`,
      unit,
      rounds: results.get(name)?.length ?? 0,
      median,
      against: against ?? null,
      ratio
    }
    const met = target && isMet(target, target.of === "ratio" ? (ratio ?? Number.NaN) : median)
    lines.set(`${measurement.case}/${measurement.against}`, { measurement, target, met })
  }
  for (const { against, target, ...alone } of takesPart) {
    if (against !== undefined && !results.has(against)) add(alone.participant, alone)
    else add(alone.participant, { ...alone, ...(against !== undefined && { against }) }, target)
  }
  // The figures of the opponents themselves.
  for (const { against, ...alone } of takesPart) if (against !== undefined && results.has(against)) add(against, alone)
  return [...lines.values()]
}

/** Null when the opponent's figure is 0. */
const ratioOf = (median: number, against: number): number | null => (against === 0 ? null : median / against)

const isMet = ({ bound, value }: Target, actual: number): boolean =>
  bound === "at least" ? actual >= value : actual <= value
