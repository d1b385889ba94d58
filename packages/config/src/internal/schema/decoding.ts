/**
 * Decodes nodes by a schema. Refused values become issues with path and location.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"
import type { Issues } from "../tree/issues.ts"
import * as Names from "../tree/names.ts"
import * as Node from "../tree/node.ts"
import * as Shape from "./shape.ts"

/** A value, or the paths of the values that the schema refuses. */
export type Decoded<A> = { readonly value: A } | { readonly refused: ReadonlyArray<Node.Path> }

/** Decodes by a schema, with keys in their canonical spelling. Refused values are added to the issues. */
export const decoder = <S extends Schema.Decoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  const shape = Shape.make(schema.ast)
  return (node: Node.Node, path: Node.Path, issues: Issues): Decoded<S["Type"]> => {
    const result = decode(plain(node, shape))
    if (Result.isSuccess(result)) return { value: result.success }
    const problems = problemsOf(result.failure.issue, [])
    for (const problem of problems) report(problem, node, shape, path, issues)
    return { refused: problems.map((problem) => problem.path) }
  }
}

const number = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i

/** Plain data for the schema. The content of a variable may stand for a number, a boolean or a list. */
const plain = (node: Node.Node, shape: Shape.Shape): unknown => {
  switch (node._tag) {
    case "List": {
      const item = Shape.select(shape, "List")?.item
      return node.items.map((each) => plain(each, item ?? shape))
    }
    case "Section": {
      const struct = Shape.select(shape, "Struct")
      const value = Shape.select(shape, "Dictionary")?.value
      const result: Record<string, unknown> = {}
      for (const entry of node.entries) {
        result[entry.key] = plain(entry.value, struct?.keys.get(entry.key)?.shape ?? value ?? shape)
      }
      return result
    }
    case "Scalar": {
      if (node.template === undefined || typeof node.value !== "string") return node.value
      const text = node.value
      const leaf = Shape.select(shape, "Leaf")
      if (Shape.isList(shape, text)) return text.split(",").map((item) => item.trim())
      if (leaf?.takesNumber && number.test(text.trim())) return Number(text)
      return leaf?.takesBoolean && (text === "true" || text === "false") ? text === "true" : text
    }
  }
}

interface Problem {
  readonly path: Node.Path
  readonly isMissing: boolean
  /** Set when a rule over several keys refuses the value. */
  readonly allowed?: unknown
}

const problemsOf = (issue: SchemaIssue.Issue, path: Node.Path): ReadonlyArray<Problem> => {
  switch (issue._tag) {
    case "Pointer":
      return problemsOf(issue.issue, [...path, ...(issue.path as Node.Path)])
    case "Filter":
    case "Encoding":
      return problemsOf(issue.issue, path)
    case "Composite":
      return issue.issues.flatMap((each) => problemsOf(each, path))
    case "AnyOf": {
      // A section is never a duration, so its problems are those of the section's keys.
      const deeper = issue.issues
        .flatMap((each) => problemsOf(each, path))
        .filter((each) => each.path.length > path.length)
      return deeper.length > 0 ? deeper : [{ path, isMissing: false }]
    }
    case "InvalidValue":
      return [{ path, isMissing: false, allowed: issue.annotations?.["message"] }]
    default:
      return [{ path, isMissing: issue._tag === "MissingKey" }]
  }
}

const report = (
  { path, isMissing, allowed }: Problem,
  root: Node.Node,
  shape: Shape.Shape,
  prefix: Node.Path,
  issues: Issues
): void => {
  if (issues.isFull()) {
    issues.more()
    return
  }
  let node: Node.Node | undefined = root
  let last: Node.Node = root
  let current = shape
  for (const key of path) {
    node = Node.child(node, key)
    last = node ?? last
    current = Shape.inside(current, key)
  }
  const leaf = Shape.select(current, "Leaf")
  const found = isMissing || node === undefined ? "nothing" : Node.show(node, hiddenOf(current, node))
  const expected = typeof allowed === "string" ? allowed : `${Shape.allowed(current)}${hint(node, leaf)}`
  issues.add([...prefix, ...path], found, expected, Node.sourceLocation(last))
}

/** A text in place of a section that has secrets, such as a URL in place of a cluster, may have them in it. */
const hiddenOf = (shape: Shape.Shape, node: Node.Node): Node.Hidden => {
  const info = Shape.select(shape, "Leaf")?.info
  const isText = node._tag === "Scalar" && typeof node.value === "string"
  return { secret: info?.secret === true || (isText && Shape.hasSecrets(shape)), hasUser: info?.hasUser }
}

/** A suggestion for a text that is close to an allowed one, or for a number in quotes. */
const hint = (node: Node.Node | undefined, leaf: Shape.Leaf | undefined): string => {
  if (node?._tag !== "Scalar" || typeof node.value !== "string") return ""
  // In `.properties` every value is a text, which the template shows as it is.
  if (node.template === JSON.stringify(node.value)) return Names.hint(node.value, leaf?.texts ?? [])
  if (node.template !== undefined) return ""
  if (leaf?.takesNumber && number.test(node.value.trim())) return ", without quotes"
  return Names.hint(node.value, leaf?.texts ?? [])
}
