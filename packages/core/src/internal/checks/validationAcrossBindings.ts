/**
 * Finds what registering several bindings would refuse, before any of them starts.
 */
import type { ConfigurationIssue } from "../../EventBusError.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Sources from "../settings/sources.ts"
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
    const names = namesOf(definition)
    const neighbours = new Set(counterparts(definition).flatMap((name) => earlier.get(name) ?? []))
    const issues = [
      ...Validation.problems(definition),
      ...(seen.has(key) ? [twice] : []),
      ...firstConflict(definition, neighbours)
    ]
    if (issues.length > 0) problems.set(index, issues)
    seen.add(key)
    for (const name of names) {
      const others = earlier.get(name)
      if (others === undefined) earlier.set(name, [definition])
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

/** The names of a binding. Two bindings can conflict only when they have one of these in common, or when one has a group that the other derives. Topics have '_' for '.', as in Kafka's metrics. */
const namesOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> => {
  const { cluster, groupId } = definition
  const onCluster = [
    ...topicsOf(definition),
    `group ${groupId}`,
    ...Validation.derivedGroups(definition).map((name) => `derived group ${name}`)
  ].map((name) => `${cluster}:${name}`)
  return [...onCluster, ...containersOf(definition)]
}

const topicsOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> =>
  [
    ...Sources.topicsOf(definition),
    ...Validation.derivedTopics(definition),
    ...(definition.deadLetter.settings.origins ?? [])
  ].map((name) => `topic ${String(name).replaceAll(".", "_")}`)

const containersOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> =>
  Validation.containersOf(definition).map((name) => `container ${name}`)

/** The names of others that would be in conflict with this binding. Bindings of one group, of which there may be hundreds, are not among each other's. */
const counterparts = (definition: BindingDefinition<unknown>): ReadonlyArray<string> => {
  const onCluster = [
    ...topicsOf(definition),
    `derived group ${definition.groupId}`,
    ...Validation.derivedGroups(definition).map((name) => `group ${name}`)
  ].map((name) => `${definition.cluster}:${name}`)
  return [...onCluster, ...containersOf(definition)]
}
