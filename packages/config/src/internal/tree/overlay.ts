/**
 * Lays one configuration over another: sections are merged key by key, other values are replaced. Keys have their canonical spelling here.
 */
import type * as Node from "./node.ts"

export const overlay = (base: Node.Node | undefined, top: Node.Node): Node.Node => {
  if (base?._tag !== "Section" || top._tag !== "Section") return top
  const merged = new Map(base.entries.map((entry) => [entry.key, entry]))
  for (const entry of top.entries) {
    merged.set(entry.key, { ...entry, value: overlay(merged.get(entry.key)?.value, entry.value) })
  }
  return { ...top, entries: Array.from(merged.values()) }
}

/** The node with `value` at `path`; missing sections are created. An index of a list may be one past its end. */
export const assign = (node: Node.Node | undefined, path: Node.Path, value: Node.Node): Node.Node => {
  const [key, ...rest] = path
  if (key === undefined) return value
  const { source, offset } = node ?? value
  if (typeof key === "number") {
    const items = node?._tag === "List" ? node.items : []
    return { _tag: "List", source, offset, items: items.toSpliced(key, 1, assign(items[key], rest, value)) }
  }
  const entries = node?._tag === "Section" ? node.entries : []
  const before = entries.find((entry) => entry.key === key)
  const entry = { key, offset: before?.offset ?? offset, value: assign(before?.value, rest, value) }
  return {
    _tag: "Section",
    source,
    offset,
    entries: before === undefined ? [...entries, entry] : entries.map((each) => (each === before ? entry : each))
  }
}

/** The node without the value at `path`, which ends with a key of a section. */
export const without = (node: Node.Node, path: Node.Path): Node.Node => {
  const [key, ...rest] = path
  if (node._tag === "List") {
    return { ...node, items: node.items.map((item, index) => (index === key ? without(item, rest) : item)) }
  }
  if (node._tag === "Scalar") return node
  const entries = node.entries.flatMap((entry) => {
    if (entry.key !== key) return [entry]
    return rest.length === 0 ? [] : [{ ...entry, value: without(entry.value, rest) }]
  })
  return { ...node, entries }
}
