/**
 * The settings of a binding with what is derived from each of its topics: retry topics and the dead letter topic.
 */
import type { FailureOptions } from "../../BindingOptions.ts"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import * as DeadLetter from "../../DeadLetter.ts"
import * as UserFunction from "../../UserFunction.ts"
import { withSuffix } from "../base/derivedNames.ts"
import * as Tiers from "../retry/tiers.ts"
import { type Given, type PlainSettings, plainSettings } from "./plainSettings.ts"
import * as Topics from "./topics.ts"

/** A topic that a binding reads, and what is derived from it. */
export interface Source {
  readonly topic: string
  readonly tiers: Tiers.Tiers
  readonly deadLetterTopic: string
}

/** Its `topic`, `tiers` and `deadLetterTopic` are those of its first topic. `sources.ts` shows it as it reads the others. */
export interface SourceSettings<out R> extends PlainSettings, Source {
  /** Its further topics. Empty for a binding of one topic. */
  readonly otherSources: ReadonlyArray<Source>
  readonly circuitBreaker: CircuitBreaker.Options<R> | undefined
  readonly deadLetter: DeadLetter.DeadLetter<R>
}

export const make = <P, D>(
  name: string,
  options: FailureOptions<P, D> & Given,
  listenerType: "SINGLE" | "BATCH"
): SourceSettings<P | D> => {
  const plain = plainSettings(name, options, listenerType)
  const deadLetter: DeadLetter.DeadLetter<P | D> = options.deadLetter ?? DeadLetter.storeOnly
  const { groupId, naming, retry } = plain
  const { topicSuffix } = deadLetter.settings
  const sourceOf = (topic: string): Source => ({
    topic,
    tiers: Tiers.make({ topic, groupId }, naming, retry.tiers),
    deadLetterTopic:
      topicSuffix === undefined
        ? UserFunction.plain("naming.deadLetter", naming.deadLetter({ topic, groupId }))
        : withSuffix(topic, topicSuffix)
  })
  const [topic = "", ...others] = Topics.listOf(options.topic)
  return {
    ...plain,
    ...sourceOf(topic),
    ...{ circuitBreaker: options.circuitBreaker, deadLetter, otherSources: others.map(sourceOf) }
  }
}

/** For every topic and retry topic of the further topics: the topic that its records come from. */
export const originsOfOthers = ({ otherSources }: Pick<SourceSettings<never>, "otherSources">) =>
  new Map(
    otherSources.flatMap(({ topic, tiers }) =>
      [topic, ...tiers.topics.map((tier) => tier.topic)].map((read) => [read, topic])
    )
  )
