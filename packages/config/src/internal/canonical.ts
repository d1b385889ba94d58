/**
 * Brings keys into their one spelling: files that say `group-id` and `groupId` can be laid over each other then. Unknown and repeated keys end here.
 */
import type { Issues } from "./issues.ts"
import * as Names from "./names.ts"
import * as Node from "./node.ts"
import * as Shape from "./shape.ts"

export const canonical = (node: Node.Node, shape: Shape.Shape, path: Node.Path, issues: Issues): Node.Node => {
  if (node._tag === "List") {
    const list = Shape.select(shape, "List")
    if (list === undefined) return node
    return { ...node, items: node.items.map((item, index) => canonical(item, list.item, [...path, index], issues)) }
  }
  if (node._tag === "Scalar") return node
  const struct = Shape.select(shape, "Struct")
  const dictionary = Shape.select(shape, "Dictionary")
  if (struct === undefined && dictionary === undefined) return node
  const seen = new Map<string, Node.Entry>()
  const entries: Array<Node.Entry> = []
  for (const entry of node.entries) {
    const at = () => Node.place({ source: node.source, offset: entry.offset })
    const key = struct === undefined ? entry.key : struct.spellings.get(entry.key)
    const inner = struct === undefined ? dictionary?.value : struct.keys.get(key ?? "")?.shape
    // A place for anchors, at the top of a file.
    if (path.length === 0 && key === undefined && entry.key.startsWith("x-")) continue
    if (key === undefined || inner === undefined) {
      issues.add([...path, entry.key], "an unknown key", known(entry.key, struct?.keys.keys() ?? []), at())
      continue
    }
    const before = seen.get(key)
    if (before !== undefined) {
      if (entry.merged) continue
      const where = Node.place({ source: node.source, offset: before.offset })
      const line = where.line === undefined ? "" : `, in line ${where.line},`
      issues.add([...path, key], `"${entry.key}" beside "${before.key}"${line} a duplicate`, "each key once", at())
      continue
    }
    seen.set(key, entry)
    entries.push({ ...entry, key, value: canonical(entry.value, inner, [...path, key], issues) })
  }
  return { ...node, entries }
}

const known = (name: string, keys: Iterable<string>): string => {
  const all = Array.from(keys)
  const closest = Names.closest(name, all)
  return closest === undefined ? `one of the keys ${all.join(", ")}` : `${closest} (did you mean that?)`
}
