/**
 * Replaces `${NAME}`, `${NAME:default}` and `${NAME:-default}` in texts. A default may contain variables, and `$${` is a literal `${`. The content of a variable is not
 * replaced again.
 */
import type { Issues } from "../tree/issues.ts"
import * as Node from "../tree/node.ts"

/** Variables by name. */
export type Variables = ReadonlyMap<string, string>

export const fromRecord = (record: Readonly<Record<string, string | undefined>>): Variables =>
  new Map(Object.entries(record).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** The node with all variables replaced. A node without variables is returned unchanged. */
export const interpolate = (
  node: Node.Node,
  variables: Variables,
  issues: Issues,
  keyPath?: Node.KeyPath
): Node.Node => {
  switch (node._tag) {
    case "List": {
      const items = node.items.map((item, key) => interpolate(item, variables, issues, { parent: keyPath, key }))
      return items.some((item, index) => item !== node.items[index]) ? { ...node, items } : node
    }
    case "Section": {
      let isChanged = false
      const entries = node.entries.map((entry) => {
        const value = interpolate(entry.value, variables, issues, { parent: keyPath, key: entry.key })
        if (value === entry.value) return entry
        isChanged = true
        return { ...entry, value }
      })
      return isChanged ? { ...node, entries } : node
    }
    case "Scalar":
      return typeof node.value === "string" && node.template === undefined && node.value.includes("${")
        ? filled(node, node.value, variables, issues, keyPath)
        : node
  }
}

const filled = (
  node: Node.Scalar,
  template: string,
  variables: Variables,
  issues: Issues,
  keyPath: Node.KeyPath | undefined
): Node.Scalar => {
  const result = fill(template, variables)
  if ("problem" in result) {
    issues.add(Node.pathOf(keyPath), result.problem, result.allowed, Node.sourceLocation(node))
    return { ...node, value: undefined }
  }
  // A text without a variable needs no template.
  return result.isFilled ? { ...node, value: result.text, template } : { ...node, value: result.text }
}

type Filled =
  | { readonly text: string; readonly isFilled: boolean }
  | { readonly problem: string; readonly allowed: string }

const maxDepth = 16
const form = `\${NAME} or \${NAME:default}; $\${ for a literal \${`

const fill = (template: string, variables: Variables, depth = 0): Filled => {
  let text = ""
  let isFilled = false
  let position = 0
  while (position < template.length) {
    const start = template.indexOf("${", position)
    if (start === -1) break
    if (template[start - 1] === "$" && start > position) {
      text += `${template.slice(position, start - 1)}\${`
      position = start + 2
      continue
    }
    const end = closing(template, start + 2)
    if (end === -1 || depth > maxDepth) {
      return { problem: "a variable that does not end", allowed: form }
    }
    const resolved = resolve(template.slice(start + 2, end), variables, depth)
    if ("problem" in resolved) return resolved
    text += template.slice(position, start) + resolved.text
    isFilled = true
    position = end + 1
  }
  return { text: text + template.slice(position), isFilled }
}

/** The end of the variable that begins in front of `from`, after the ends of the variables in its default. */
const closing = (template: string, from: number): number => {
  let open = 1
  for (let index = from; index < template.length; index++) {
    if (template.startsWith("${", index)) open++
    else if (template[index] === "}" && --open === 0) return index
  }
  return -1
}

const reference = /^([A-Za-z_][A-Za-z0-9_.]*)(?:(:-|:)(.*))?$/s

const resolve = (text: string, variables: Variables, depth: number): Filled => {
  const [, name, mark, fallback] = reference.exec(text) ?? []
  if (name === undefined) {
    return { problem: "a variable without a name", allowed: form }
  }
  const value = variables.get(name)
  // As in a shell, the default of ":-" also replaces an empty variable.
  if (value !== undefined && !(mark === ":-" && value === "")) return { text: value, isFilled: true }
  if (fallback !== undefined) return fill(fallback, variables, depth + 1)
  return {
    problem: `variable ${name}, which is not set`,
    allowed: `a variable that is set, or a default: \${${name}:default}`
  }
}
