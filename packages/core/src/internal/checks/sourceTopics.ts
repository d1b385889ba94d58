/**
 * Checks the topics that a binding reads, and the names that are derived from each (ruling 1).
 */
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as TopicName from "../../TopicName.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import { shown } from "../base/shown.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"

export const problems = (definition: BindingDefinition<unknown>): ReadonlyArray<ConfigurationIssue> => {
  const sources = Sources.of(definition)
  return [
    ...sources.flatMap((source, at) => [
      ...topicName(pathOf(definition, at), source.topic),
      ...topicName("deadLetterTopic", source.deadLetterTopic),
      ...derivedNames(source),
      ...journals(source, pathOf(definition, at))
    ]),
    ...sources.flatMap((source, at) =>
      sources.slice(0, at).flatMap((earlier, first) => betweenTwo(earlier, first, source, at))
    )
  ]
}

/** The option that names a topic. */
export const pathOf = ({ otherSources }: BindingDefinition<unknown>, at: number): string =>
  otherSources.length === 0 ? "topic" : `topic[${at}]`

/** The topics that a binding publishes to by itself because of one of its topics. */
export const derivedOf = ({ tiers, deadLetterTopic }: BindingDefinition<unknown>): ReadonlyArray<string> => [
  ...tiers.topics.map(({ topic }) => topic),
  deadLetterTopic,
  DerivedNames.journal(deadLetterTopic)
]

/** Kafka has no room for both names. */
export const isSame = (a: string) => (b: string) => a === b || DerivedNames.collide(a, b)

/** The names of the derived topics must be legal and distinct from each other and from their source. */
const derivedNames = ({ topic, tiers, deadLetterTopic, naming }: BindingDefinition<unknown>) => {
  const retry = tiers.topics.map((tier) => tier.topic)
  if (TopicName.illegal(topic) !== undefined) return []
  return DerivedNames.problems({ retry, deadLetter: deadLetterTopic }, [topic])
    .filter(({ name }) => retry.includes(name) || TopicName.illegal(name) === undefined)
    .map(({ name, reason }) =>
      issue(
        retry.includes(name) ? "retry.tiers" : "deadLetterTopic",
        name,
        `topic names that Kafka can tell apart: ${reason} (naming strategy ${naming.name})`
      )
    )
}

/** Every dead letter topic has a journal of its replays beside it, which a command makes, too: its name must be legal, and nobody reads a journal as a source (ruling 81). */
const journals = ({ topic, deadLetterTopic }: BindingDefinition<unknown>, path: string) => {
  const journalled = DerivedNames.journalOf(topic)
  return [
    ...(TopicName.illegal(deadLetterTopic) !== undefined
      ? []
      : topicName("deadLetter.journal", DerivedNames.journal(deadLetterTopic))),
    ...(journalled === undefined
      ? []
      : [
          issue(path, topic, `a topic of records: this is the name of the journal of dead letter topic '${journalled}'`)
        ])
  ]
}

/**
 * Two topics of a list share nothing: a retry topic or a dead letter topic of both could not say which of them a record belongs to, and one that the binding reads as a source
 * would give every failed record to the handler again.
 */
const betweenTwo = (
  earlier: BindingDefinition<unknown>,
  first: number,
  later: BindingDefinition<unknown>,
  second: number
): ReadonlyArray<ConfigurationIssue> => {
  if (isSame(earlier.topic)(later.topic))
    return [
      issue(
        `topic[${second}]`,
        later.topic,
        `a name that Kafka can tell apart from topic[${first}], '${earlier.topic}'`
      )
    ]
  const derivedBy = (source: BindingDefinition<unknown>, topic: string, at: number) =>
    derivedOf(source)
      .filter(isSame(topic))
      .map((name) =>
        issue(`topic[${at}]`, topic, `a topic of records: topic '${source.topic}' of the list derives '${name}'`)
      )
  const shared = derivedOf(earlier).filter((topic) => derivedOf(later).some(isSame(topic)))
  // The journal is named after the dead letter topic.
  const [firstShared] = shared
  const isRetry = firstShared !== undefined && earlier.tiers.ofTopic(firstShared) !== undefined
  return [
    ...derivedBy(earlier, later.topic, second),
    ...derivedBy(later, earlier.topic, first),
    ...(firstShared === undefined
      ? []
      : [
          issue(
            isRetry ? "retry.tiers" : "deadLetterTopic",
            firstShared,
            `names that differ from topic to topic: '${earlier.topic}' and '${later.topic}' would share this one (naming strategy ${later.naming.name})`
          )
        ])
  ]
}

const topicName = (path: string, value: string) => {
  const reason = TopicName.illegal(value)
  return reason === undefined ? [] : [issue(path, value, `a legal topic name: ${reason}`)]
}

const issue = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: shown(found),
  allowed
})
