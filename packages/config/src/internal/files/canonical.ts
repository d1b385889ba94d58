/**
 * Brings keys into their one spelling: files that say `group-id` and `groupId` can be laid over each other then. Unknown and repeated keys end here.
 */

import * as Shape from "../schema/shape.ts"
import type { Issues } from "../tree/issues.ts"
import * as Names from "../tree/names.ts"
import * as Node from "../tree/node.ts"

export const canonical = (node: Node.Node, shape: Shape.Shape, issues: Issues, trail?: Node.Trail): Node.Node => {
  if (node._tag === "Scalar") return node
  if (node._tag === "List") {
    const list = Shape.select(shape, "List")
    if (list === undefined) return node
    return {
      ...node,
      items: node.items.map((item, key) => canonical(item, list.item, issues, { above: trail, key }))
    }
  }
  const struct = Shape.select(shape, "Struct")
  const dictionary = Shape.select(shape, "Dictionary")
  if (struct === undefined && dictionary === undefined) return node
  const seen = new Map<string, Node.Entry>()
  const entries: Array<Node.Entry> = []
  for (const entry of node.entries) {
    const key = struct === undefined ? entry.key : struct.spellings.get(entry.key)
    // A place for anchors, at the top of a file.
    if (trail === undefined && key === undefined && entry.key.startsWith("x-")) continue
    const inner = key === undefined ? undefined : (struct?.keys.get(key)?.shape ?? dictionary?.value)
    if (key === undefined || inner === undefined) {
      const path = [...Node.pathOf(trail), entry.key]
      const newName = struct?.formerSpellings.get(entry.key)
      if (newName === undefined) {
        issues.add(path, "an unknown key", known(entry.key, struct?.keys.keys() ?? []), placeOf(node, entry))
      } else {
        issues.add(path, "a key that was renamed", `${newName}, its new name`, placeOf(node, entry))
      }
      continue
    }
    const before = seen.get(key)
    if (before !== undefined) {
      if (entry.merged) continue
      const { line } = placeOf(node, before)
      const found = `"${entry.key}" beside "${before.key}"${line === undefined ? "" : `, in line ${line},`} a duplicate`
      issues.add([...Node.pathOf(trail), key], found, "each key once", placeOf(node, entry))
      continue
    }
    seen.set(key, entry)
    const value = canonical(entry.value, inner, issues, { above: trail, key })
    entries.push(key === entry.key && value === entry.value ? entry : { key, offset: entry.offset, value })
  }
  return { ...node, entries }
}

const placeOf = ({ source }: Node.Section, { offset }: Node.Entry): Node.Place => Node.place({ source, offset })

const known = (name: string, keys: Iterable<string>): string => {
  const all = Array.from(keys)
  const closest = Names.closest(name, all)
  return closest === undefined ? `one of the keys ${all.join(", ")}` : `${closest} (did you mean that?)`
}
