/**
 * From nodes to values: the schema decides, and what it refuses is told by path and place.
 */
import { Result, Schema, type SchemaIssue } from "effect"
import type { Issues } from "../tree/issues.ts"
import * as Names from "../tree/names.ts"
import * as Node from "../tree/node.ts"
import * as Shape from "./shape.ts"

/** A value, or where the ones are that the schema refuses. */
export type Decoded<A> = { readonly value: A } | { readonly refused: ReadonlyArray<Node.Path> }

/** Decodes by a schema, whose keys are in their one spelling. What it refuses is added to the issues. */
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

/** Plain data for the schema. The text of a variable may stand for a number, true or false, or several entries. */
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
      if (leaf === undefined && Shape.select(shape, "List") !== undefined)
        return text.split(",").map((item) => item.trim())
      if (leaf?.takesNumber && number.test(text.trim())) return Number(text)
      return leaf?.takesBoolean && (text === "true" || text === "false") ? text === "true" : text
    }
  }
}

interface Problem {
  readonly path: Node.Path
  readonly isMissing: boolean
  /** Where a rule over several keys says it, and not the shape. */
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
      // A section is no duration; what is wrong with it is wrong with the section.
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
  let node: Node.Node | undefined = root
  let last: Node.Node = root
  let at = shape
  for (const key of path) {
    node = Node.child(node, key)
    last = node ?? last
    at = Shape.inside(at, key)
  }
  const leaf = Shape.select(at, "Leaf")
  const found = isMissing || node === undefined ? "nothing" : Node.show(node, leaf?.facts.secret)
  const expected = typeof allowed === "string" ? allowed : `${Shape.allowed(at)}${hint(node, leaf)}`
  issues.add([...prefix, ...path], found, expected, Node.place(last))
}

/** A text that is nearly one of those that are allowed, and what to do about a number in quotes. */
const hint = (node: Node.Node | undefined, leaf: Shape.Leaf | undefined): string => {
  if (node?._tag !== "Scalar" || node.template !== undefined || typeof node.value !== "string") return ""
  if (leaf?.takesNumber && number.test(node.value.trim())) return ", without quotes"
  return Names.hint(node.value, leaf?.texts ?? [])
}
