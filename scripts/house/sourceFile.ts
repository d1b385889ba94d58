/**
 * Reads one TypeScript file for the checks of the house: its syntax tree, its comments, and lines that hold code.
 *
 * Called by the checks of this folder. Nothing here knows what a check looks for.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type Comment, type EcmaScriptModule, parseSync } from "oxc-parser"

/** A node of the syntax tree (ESTree with TypeScript), read by name of its fields. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

export interface SourceFile {
  /** Path from the root of the tree, with `/`. */
  readonly path: string
  readonly text: string
  readonly body: ReadonlyArray<Node>
  readonly comments: ReadonlyArray<Comment>
  readonly module: EcmaScriptModule
  /** Line of an offset, counted from 1. */
  readonly lineAt: (offset: number) => number
  /** Lines from one offset to another that hold more than white space and comments. */
  readonly codeLines: (start: number, end: number) => number
  /** The comment that ends right before an offset; undefined when something else stands there. */
  readonly commentBefore: (offset: number) => Comment | undefined
}

/** Reads and parses a file. Throws when its syntax is wrong. */
export const readSource = (root: string, path: string): SourceFile =>
  parse(path, readFileSync(join(root, path), "utf8"))

const parse = (path: string, text: string): SourceFile => {
  const { program, module, comments, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`)
  const lineStarts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  const code = withoutComments(text, comments)
  const commentsByEnd = new Map(comments.map((comment) => [comment.end, comment]))
  return {
    path,
    text,
    body: program.body as unknown as ReadonlyArray<Node>,
    comments,
    module,
    lineAt: (offset) => lowerBound(lineStarts, offset + 1),
    codeLines: (start, end) =>
      code
        .slice(start, end)
        .split("\n")
        .filter((line) => line.trim() !== "").length,
    commentBefore: (offset) => commentsByEnd.get(text.slice(0, offset).trimEnd().length)
  }
}

/** How many of the ascending numbers are below a limit. */
const lowerBound = (numbers: ReadonlyArray<number>, limit: number): number => {
  let low = 0
  let high = numbers.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (numbers[middle]! < limit) low = middle + 1
    else high = middle
  }
  return low
}

/** The text with spaces where comments stand; line breaks and offsets stay. */
const withoutComments = (text: string, comments: ReadonlyArray<Comment>): string => {
  let end = 0
  let code = ""
  for (const comment of comments) {
    code += text.slice(end, comment.start) + text.slice(comment.start, comment.end).replace(/[^\n]/g, " ")
    end = comment.end
  }
  return code + text.slice(end)
}

/** The nodes right below a node, in the order of its fields. */
export const children = (node: Node): ReadonlyArray<Node> => Object.values(node).flatMap(nodesIn)

const nodesIn = (value: unknown): ReadonlyArray<Node> => {
  if (Array.isArray(value)) return value.flatMap(nodesIn)
  return value !== null && typeof value === "object" && "type" in value ? [value as Node] : []
}

/** Calls `visit` for each node below the given ones, with the nodes above it, the nearest first. */
export const walk = (
  nodes: ReadonlyArray<Node>,
  visit: (node: Node, above: ReadonlyArray<Node>) => void,
  above: ReadonlyArray<Node> = []
): void => {
  for (const node of nodes) {
    visit(node, above)
    walk(children(node), visit, [node, ...above])
  }
}

/** The name that a declaration, a property or a method is known by; undefined when it is computed. */
export const nameOf = (node: Node): string | undefined => {
  const name = (node.id ?? node.key) as Node | null | undefined
  if (name === null || name === undefined || node.computed === true) return undefined
  if (name.type === "Literal") return String(name.value)
  return typeof name.name === "string" ? name.name : undefined
}

/** The docstring right before an offset, without its stars; undefined when there is none. */
export const docstringBefore = (file: SourceFile, offset: number): string | undefined => {
  const comment = file.commentBefore(offset)
  return comment?.type === "Block" && comment.value.startsWith("*") ? docstringText(comment.value) : undefined
}

/** The text of a docstring, given what stands between the opening and the closing mark. */
export const docstringText = (value: string): string =>
  value
    .replace(/^\*/, "")
    .split("\n")
    .map((line, index) => (index === 0 ? line : line.replace(/^\s*\* ?/, "")))
    .join("\n")
    .trim()
