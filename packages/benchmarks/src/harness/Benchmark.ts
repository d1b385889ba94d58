/**
 * A benchmark: its participants, its measures, and its targets.
 *
 * Participants run one after another, round by round, each in a fresh process, so that no warm code and no garbage of another participant counts. A
 * participant returns samples, and fails when a record is missing or came twice: a fast loser has no figure.
 */
import type { ConsumerRecord } from "@eventbus/core"
import { type Effect, Schema } from "effect"

/** The answer of a process: named series of numbers. */
export const Samples = Schema.Record(Schema.String, Schema.Array(Schema.Number))
export type Samples = typeof Samples.Type

/** Numbers that the command line may set, such as `--records 1000`. */
export type Parameters = Readonly<Record<string, number>>

/** The input of a process, as plain data. */
export const ProcessInput = Schema.Struct({
  brokers: Schema.Array(Schema.String),
  topic: Schema.String,
  groupId: Schema.String,
  overrides: Schema.Record(Schema.String, Schema.Number)
})
export type ProcessInput = typeof ProcessInput.Type

/** A further process that a participant has started. */
export interface Helper {
  /** Waits until the helper reports that it has begun. */
  readonly begun: Effect.Effect<void, ProcessFailed>
  /** Asks the helper to end. */
  readonly stop: Effect.Effect<void>
  readonly samples: Effect.Effect<Samples, ProcessFailed>
}

/** One round of one participant. */
export interface Round<P extends Parameters> extends ProcessInput {
  readonly parameters: P
  /** Starts another process of this benchmark, which ends with the round at the latest. */
  readonly start: (helper: string) => Effect.Effect<Helper>
  /** Reports to the parent process that the work has begun. */
  readonly begin: () => void
  /** Waits until the parent process asks this process to end. */
  readonly stopped: Effect.Effect<void>
}

/** The work of one process. */
export type Role<P extends Parameters> = (round: Round<P>) => Effect.Effect<Samples, unknown>

/** A topic that lives as long as the run, or is created for every round. */
export interface TopicPlan<P extends Parameters> {
  readonly lifetime: "run" | "round"
  readonly partitions: number
  /** Records in the topic when the round begins. Default none. */
  readonly content?: (parameters: P) => Content
}

/** Records whose value starts with their number, counted from 0, in four bytes. */
export interface Content {
  readonly records: number
  readonly bytes: number
  /** Number of keys, used in rotation. Default: no keys, and partitions in rotation. */
  readonly keys?: number
  /** Batches of 16 KiB in this codec, with values of text instead of one repeated letter. Default: large batches, uncompressed. */
  readonly codec?: ConsumerRecord.Compression
}

export interface Participant<P extends Parameters> {
  readonly topic: TopicPlan<P>
  readonly role: Role<P>
}

/** A target for the ratio to the opponent, or for the figure itself. */
export interface Target {
  readonly of: "ratio" | "median"
  readonly bound: "at least" | "at most"
  readonly value: number
}

export const ratioAtLeast = (value: number): Target => ({ of: "ratio", bound: "at least", value })
export const ratioAtMost = (value: number): Target => ({ of: "ratio", bound: "at most", value })
export const medianAtLeast = (value: number): Target => ({ of: "median", bound: "at least", value })
export const medianAtMost = (value: number): Target => ({ of: "median", bound: "at most", value })

/** One figure of one participant, alone or against the same figure of another. */
export interface Measure {
  readonly participant: string
  /** Name of the series of samples. */
  readonly series: string
  /** Quantile of a round's samples, from 0 to 1. Default 0.5, the median. The result is always the median of the rounds. */
  readonly quantile?: number
  /** Distinguishes figures of one participant: the case is `participant label`. */
  readonly label?: string
  readonly unit: string
  /** The participant to compare with. */
  readonly against?: string
  readonly target?: Target
}

export interface Options<P extends Parameters> {
  readonly name: string
  /** Description of the work and of the settings on all sides, printed above the table. */
  readonly header: ReadonlyArray<string>
  /** Parameters with their defaults. */
  readonly parameters: P
  /** Parameters of a smoke test: a load so small that the run only shows whether every participant still works. */
  readonly smoke: Partial<P>
  /** Number of rounds. Default 3. */
  readonly rounds?: number
  readonly participants: Readonly<Record<string, Participant<P>>>
  /** Further processes that participants start. */
  readonly helpers?: Readonly<Record<string, Role<P>>>
  readonly measures: ReadonlyArray<Measure>
}

/** A process of a benchmark failed; `detail` is its last report. */
export class ProcessFailed extends Schema.TaggedError<ProcessFailed>()("ProcessFailed", {
  process: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.process}: ${this.detail}`
  }
}

/** A benchmark without the type of its parameters, as the harness runs it. */
export interface Benchmark extends Omit<Options<Parameters>, "participants" | "helpers" | "smoke"> {
  /** Parameters of a smoke test. */
  readonly smoke: Parameters
  readonly participants: ReadonlyMap<string, { readonly topic: TopicPlan<Parameters> }>
  /** The role of a process by its name; undefined for an unknown name. */
  readonly role: (
    name: string
  ) => ((round: Omit<Round<Parameters>, "parameters">) => Effect.Effect<Samples, unknown>) | undefined
}

export const make = <P extends Parameters>(options: Options<P>): Benchmark => {
  const { participants, helpers = {}, smoke, ...rest } = options
  const effective = (overrides: Parameters): P => ({ ...options.parameters, ...overrides })
  const erase = (topic: TopicPlan<P>): TopicPlan<Parameters> => {
    const { content, ...plan } = topic
    return content === undefined ? plan : { ...plan, content: (overrides) => content(effective(overrides)) }
  }
  const plans = new Map<TopicPlan<P>, TopicPlan<Parameters>>()
  const planOf = (topic: TopicPlan<P>): TopicPlan<Parameters> => {
    const known = plans.get(topic) ?? erase(topic)
    plans.set(topic, known)
    return known
  }
  return {
    ...rest,
    smoke: smoke as Parameters,
    participants: new Map(Object.entries(participants).map(([name, { topic }]) => [name, { topic: planOf(topic) }])),
    role: (name) => {
      const role = participants[name]?.role ?? helpers[name]
      return role && ((round) => role({ ...round, parameters: effective(round.overrides) }))
    }
  }
}
