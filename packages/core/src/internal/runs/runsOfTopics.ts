/**
 * The plans and runs of a binding. A binding of several topics has a journal for each: a plan is made for one topic, and the id of a plan or run finds its topic.
 */
import * as Effect from "effect/Effect"
import type { Broker } from "../../Broker.ts"
import type { Runs } from "../../ReplayRun.ts"
import * as TopicArgument from "../replay/topicArgument.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import * as RunsOfBinding from "./ofBinding.ts"

export const make = (
  definition: BindingDefinition<unknown>,
  broker: Broker["Service"],
  hostname: string,
  isBreakerOpen: () => boolean
): Runs => {
  const topics = Sources.topicsOf(definition)
  const each = Sources.of(definition).map((source) => RunsOfBinding.make(source, broker, hostname, isBreakerOpen))
  const ofTopic: Runs["ofTopic"] = (topic) =>
    Effect.map(TopicArgument.indexOf("runs", topics, topic), (at) => ({ ...each[at]!, ofTopic }))
  return { ...(each.length === 1 ? each[0]! : together(topics, each)), ofTopic }
}

/** The plans and runs over one dead letter topic. */
type OneTopic = Omit<Runs, "ofTopic">

const together = (topics: ReadonlyArray<string>, each: ReadonlyArray<OneTopic>): OneTopic => {
  /** The first journal that knows the id. Where none does, the answer of the first one says so. */
  const found = <A, E extends { readonly _tag: string }>(
    use: (runs: OneTopic) => Effect.Effect<A, E>
  ): Effect.Effect<A, E> =>
    each
      .map(use)
      .reduceRight((next, run) =>
        Effect.catchIf(run, isUnknown, (unknown) =>
          Effect.mapError(next, (error) => (isUnknown(error) ? unknown : error))
        )
      )
  return {
    plan: () => TopicArgument.missing("plan", topics),
    getPlan: (id) => found((runs) => runs.getPlan(id)),
    apply: (id, options) => found((runs) => runs.apply(id, options)),
    resume: (id, options) => found((runs) => runs.resume(id, options)),
    pause: (id, reason) => found((runs) => runs.pause(id, reason)),
    cancel: (id, reason) => found((runs) => runs.cancel(id, reason)),
    setRate: (id, rate) => found((runs) => runs.setRate(id, rate)),
    receipt: (id) => found((runs) => runs.receipt(id)),
    list: Effect.map(
      Effect.forEach(each, ({ list }) => list),
      (lists) => lists.flat().sort((one, other) => other.startedAtMillis - one.startedAtMillis)
    )
  }
}

const isUnknown = ({ _tag }: { readonly _tag: string }): boolean => _tag === "UnknownPlan" || _tag === "UnknownRun"
