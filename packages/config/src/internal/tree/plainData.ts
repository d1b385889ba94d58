/**
 * Converts data from code or from a request into nodes.
 */
import * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type * as Node from "./node.ts"

const maxDepth = 32

/** `undefined` is an absent key. A value of a kind that no configuration has stays unchanged, so that the schema refuses it. */
export const toNode = (value: unknown, source: Node.Source, depth = 0): Node.Node => {
  const placed = { source, offset: 0 }
  if (Redacted.isRedacted(value)) {
    return { _tag: "Scalar", ...placed, value: Redacted.value(value), template: "<redacted>" }
  }
  if (Duration.isDuration(value)) return { _tag: "Scalar", ...placed, value: Duration.toMillis(value) }
  if (!Predicate.isObjectOrArray(value) || depth > maxDepth) return { _tag: "Scalar", ...placed, value }
  if (Array.isArray(value)) {
    return { _tag: "List", ...placed, items: value.map((item) => toNode(item, source, depth + 1)) }
  }
  const entries = value instanceof Map ? Array.from(value) : Object.entries(value)
  return {
    _tag: "Section",
    ...placed,
    entries: entries
      // A key `__proto__` would become the prototype of the result.
      .filter(([key, each]) => each !== undefined && key !== "__proto__")
      .map(([key, each]) => ({ key: String(key), offset: 0, value: toNode(each, source, depth + 1) }))
  }
}
