/**
 * Brings every key into its canonical spelling, so that files with `group-id` and with `groupId` can be merged. Unknown and duplicate keys are
 * refused here.
 */

import * as Shape from "../schema/shape.ts"
import type { Issues } from "../tree/issues.ts"
import * as Names from "../tree/names.ts"
import * as Node from "../tree/node.ts"

export const canonical = (node: Node.Node, shape: Shape.Shape, issues: Issues, keyPath?: Node.KeyPath): Node.Node => {
  if (node._tag === "Scalar") return node
  if (node._tag === "List") {
    const list = Shape.select(shape, "List")
    if (list === undefined) return node
    return {
      ...node,
      items: node.items.map((item, key) => canonical(item, list.item, issues, { parent: keyPath, key }))
    }
  }
  const struct = Shape.select(shape, "Struct")
  const dictionary = Shape.select(shape, "Dictionary")
  if (struct === undefined && dictionary === undefined) return node
  const seen = new Map<string, Node.Entry>()
  const entries: Array<Node.Entry> = []
  for (const entry of node.entries) {
    const key = struct === undefined ? entry.key : struct.spellings.get(entry.key)
    // Keys that begin with `x-`, at the top of a file, hold anchors.
    if (keyPath === undefined && key === undefined && entry.key.startsWith("x-")) continue
    const inner = key === undefined ? undefined : (struct?.keys.get(key)?.shape ?? dictionary?.value)
    if (key === undefined || inner === undefined) {
      if (issues.isFull()) {
        issues.more()
        continue
      }
      const path = [...Node.pathOf(keyPath), entry.key]
      const newName = struct?.formerSpellings.get(entry.key)
      if (newName === undefined) {
        issues.add(path, "an unknown key", known(entry.key, struct?.keys.keys() ?? []), locationOf(node, entry))
      } else {
        issues.add(path, "a key that was renamed", `${newName}, its new name`, locationOf(node, entry))
      }
      continue
    }
    const before = seen.get(key)
    if (before !== undefined) {
      if (entry.merged) continue
      const { line } = locationOf(node, before)
      const found = `"${entry.key}" beside "${before.key}"${line === undefined ? "" : `, in line ${line},`} a duplicate`
      issues.duplicate([...Node.pathOf(keyPath), key], found, "each key once", locationOf(node, entry))
      continue
    }
    seen.set(key, entry)
    const value = canonical(entry.value, inner, issues, { parent: keyPath, key })
    entries.push(key === entry.key && value === entry.value ? entry : { key, offset: entry.offset, value })
  }
  return { ...node, entries }
}

const locationOf = ({ source }: Node.Section, { offset }: Node.Entry): Node.SourceLocation =>
  Node.sourceLocation({ source, offset })

const known = (name: string, keys: Iterable<string>): string => {
  const all = Array.from(keys)
  const closest = Names.closest(name, all)
  return closest === undefined ? `one of the keys ${all.join(", ")}` : `${closest} (did you mean that?)`
}
