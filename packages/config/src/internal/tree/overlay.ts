/**
 * One configuration over another: sections are merged key by key, everything else is replaced. Keys are in their one spelling here.
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

/** The node with `value` at `path`, whose sections are made where they are missing. An index of a list may be one behind its end. */
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

/** The node without what is at `path`, a key of a section. */
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
