/**
 * Finds what registering several bindings would refuse, before any of them starts.
 */
import type { ConfigurationIssue } from "../../EventBusError.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Validation from "./validation.ts"

/** The problems of each binding, by its index. A conflict between two bindings is a problem of the later one. */
export const problemsOf = (
  definitions: ReadonlyArray<BindingDefinition<unknown>>
): ReadonlyMap<number, ReadonlyArray<ConfigurationIssue>> => {
  const seen = new Set<string>()
  const earlier = new Map<string, Array<BindingDefinition<unknown>>>()
  const problems = new Map<number, ReadonlyArray<ConfigurationIssue>>()
  for (const [index, definition] of definitions.entries()) {
    const key = BindingKey.of(definition)
    const twice = { path: "name", found: `'${definition.name}' again`, allowed: "a name that no other binding has" }
    const topics = topicsOf(definition)
    const neighbours = new Set(topics.flatMap((topic) => earlier.get(topic) ?? []))
    const issues = [
      ...Validation.problems(definition),
      ...(seen.has(key) ? [twice] : []),
      ...firstConflict(definition, neighbours)
    ]
    if (issues.length > 0) problems.set(index, issues)
    seen.add(key)
    for (const topic of topics) {
      const others = earlier.get(topic)
      if (others === undefined) earlier.set(topic, [definition])
      else others.push(definition)
    }
  }
  return problems
}

/** One conflict is enough: when hundreds of bindings share a topic, reporting every pair would only repeat the same cause. */
const firstConflict = (
  definition: BindingDefinition<unknown>,
  neighbours: Iterable<BindingDefinition<unknown>>
): ReadonlyArray<ConfigurationIssue> => {
  for (const other of neighbours) {
    const conflicts = Validation.conflicts(definition, [other])
    if (conflicts.length > 0) return conflicts
  }
  return []
}

/** All topics of a binding, with '.' as '_' as in Kafka's metrics. Two bindings can conflict only when they have one of these in common. */
const topicsOf = ({ cluster, topic, tiers, deadLetterTopic }: BindingDefinition<unknown>): ReadonlyArray<string> =>
  [topic, ...tiers.topics.map((tier) => tier.topic), deadLetterTopic].map(
    (name) => `${cluster}:${String(name).replaceAll(".", "_")}`
  )
