/**
 * A benchmark: what takes part, what is measured, and what must be reached.
 *
 * Participants take turns, round by round, each in a fresh process, so that neither the other's warm code nor its garbage counts. A participant
 * answers with samples and fails when a record is missing or came twice: a fast loser has no figure.
 */
import { type Effect, Schema } from "effect"

/** What a process answers with: named series of numbers. */
export const Samples = Schema.Record(Schema.String, Schema.Array(Schema.Number))
export type Samples = typeof Samples.Type

/** Numbers that the command line may set, such as `--records 1000`. */
export type Parameters = Readonly<Record<string, number>>

/** Where a process finds what it needs. Serialisable. */
export const ProcessInput = Schema.Struct({
  brokers: Schema.Array(Schema.String),
  topic: Schema.String,
  groupId: Schema.String,
  overrides: Schema.Record(Schema.String, Schema.Number)
})
export type ProcessInput = typeof ProcessInput.Type

/** A process that a participant has started. */
export interface Helper {
  /** Waits until the helper says that it has begun. */
  readonly begun: Effect.Effect<void, ProcessFailed>
  /** Asks the helper to end. */
  readonly stop: Effect.Effect<void>
  readonly samples: Effect.Effect<Samples, ProcessFailed>
}

/** One turn of one participant. */
export interface Round<P extends Parameters> extends ProcessInput {
  readonly parameters: P
  /** Starts another process of this benchmark; it does not outlive the round. */
  readonly start: (helper: string) => Effect.Effect<Helper>
  /** Tells whoever started this process that its work has begun. */
  readonly begin: () => void
  /** Waits until whoever started this process asks it to end. */
  readonly stopped: Effect.Effect<void>
}

/** What one process does. */
export type Role<P extends Parameters> = (round: Round<P>) => Effect.Effect<Samples, unknown>

/** A topic, which lives as long as the run or is a fresh one in every round. */
export interface TopicPlan<P extends Parameters> {
  readonly lifetime: "run" | "round"
  readonly partitions: number
  /** What it holds when the round begins. Default: nothing. */
  readonly content?: (parameters: P) => Content
}

/** Records whose value starts with their number, counted from 0, in four bytes. */
export interface Content {
  readonly records: number
  readonly bytes: number
  /** How many keys to use in turn. Default: no key, and partitions in turn. */
  readonly keys?: number
}

export interface Participant<P extends Parameters> {
  readonly topic: TopicPlan<P>
  readonly role: Role<P>
}

/** What must be reached: by the ratio to the opponent, or by the figure itself. */
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
  /** Which samples. */
  readonly series: string
  /** Which of a round's samples, from 0 to 1. Default 0.5, the median. The rounds' values have their median taken in any case. */
  readonly quantile?: number
  /** Tells figures of one participant apart: the case is `participant label`. */
  readonly label?: string
  readonly unit: string
  /** The participant to compare with. */
  readonly against?: string
  readonly target?: Target
}

export interface Options<P extends Parameters> {
  readonly name: string
  /** What is done and with which settings, on all sides: printed above the table. */
  readonly header: ReadonlyArray<string>
  /** With their defaults. */
  readonly parameters: P
  /** Default 3. */
  readonly rounds?: number
  readonly participants: Readonly<Record<string, Participant<P>>>
  /** Processes that participants start beside themselves. */
  readonly helpers?: Readonly<Record<string, Role<P>>>
  readonly measures: ReadonlyArray<Measure>
}

/** A process of a benchmark ended badly; `detail` is what it said. */
export class ProcessFailed extends Schema.TaggedError<ProcessFailed>()("ProcessFailed", {
  process: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.process}: ${this.detail}`
  }
}

/** A benchmark whose parameter names are erased: what the harness runs. */
export interface Benchmark extends Omit<Options<Parameters>, "participants" | "helpers"> {
  readonly participants: ReadonlyMap<string, { readonly topic: TopicPlan<Parameters> }>
  /** What the process of that name does; undefined when there is none. */
  readonly role: (
    name: string
  ) => ((round: Omit<Round<Parameters>, "parameters">) => Effect.Effect<Samples, unknown>) | undefined
}

export const make = <P extends Parameters>(options: Options<P>): Benchmark => {
  const { participants, helpers = {}, ...rest } = options
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
    participants: new Map(Object.entries(participants).map(([name, { topic }]) => [name, { topic: planOf(topic) }])),
    role: (name) => {
      const role = participants[name]?.role ?? helpers[name]
      return role && ((round) => role({ ...round, parameters: effective(round.overrides) }))
    }
  }
}
