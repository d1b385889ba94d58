/**
 * No named function only passes its parameters on to another function: its callers may call that one.
 *
 * A method that asks a value of its own (`known.get(name)`) is not meant: it keeps the value closed.
 */
import { globSync } from "node:fs"
import type { Check, Violation } from "./report.ts"
import { type Node, nameOf, readSource, type SourceFile, walk } from "./sourceFile.ts"

const files = ["packages/*/src/**/*.ts", "scripts/**/*.ts"]

export const passingOn: Check = (root) => {
  const sources = globSync(files, { cwd: root })
    .sort()
    .map((path) => readSource(root, path))
  return { violations: sources.flatMap(passersOn), summary: `${sources.length} files` }
}

const passersOn = (file: SourceFile): ReadonlyArray<Violation> => {
  const functions = new Set([...topLevelNames(file), ...importedNames(file)])
  const found: Array<Violation> = []
  walk(file.body, (node, [holder]) => {
    const name = holder?.type === "VariableDeclarator" ? nameOf(holder) : nameOf(node)
    const call = onlyCall(node)
    if (name === undefined || call === undefined) return
    const target = calleeName(call.callee as Node)
    if (target === undefined || !functions.has(target.split(".")[0]!)) return
    const parameters = names(node.params as ReadonlyArray<Node>)
    const given = names(call.arguments as ReadonlyArray<Node>)
    if (parameters.length === 0 || parameters.join() !== given.join() || parameters.includes("")) return
    found.push({ file: file.path, line: file.lineAt(node.start), message: `${name} only passes on to ${target}` })
  })
  return found
}

/** The call that a function consists of. */
const onlyCall = (node: Node): Node | undefined => {
  if (node.type !== "ArrowFunctionExpression" && node.type !== "FunctionDeclaration") return undefined
  const body = node.body as Node | null
  const statements = body?.type === "BlockStatement" ? (body.body as ReadonlyArray<Node>) : []
  const result = statements.length === 1 && statements[0]?.type === "ReturnStatement" ? statements[0].argument : body
  return (result as Node | null)?.type === "CallExpression" ? (result as Node) : undefined
}

/** `name`, or `Namespace.name`. */
const calleeName = (callee: Node): string | undefined => {
  if (callee.type === "Identifier") return callee.name as string
  if (callee.type !== "MemberExpression" || (callee.object as Node).type !== "Identifier") return undefined
  return `${(callee.object as Node).name}.${(callee.property as Node).name}`
}

/** Names of identifiers; empty for everything else. */
const names = (nodes: ReadonlyArray<Node>): ReadonlyArray<string> =>
  nodes.map((node) => (node.type === "Identifier" ? (node.name as string) : ""))

const importedNames = (file: SourceFile): ReadonlyArray<string> =>
  file.module.staticImports.flatMap(({ entries }) => entries.map(({ localName }) => localName.value))

/** Functions of the file itself; its other values may be what a function keeps closed. */
const topLevelNames = (file: SourceFile): ReadonlyArray<string> =>
  file.body.flatMap((statement) => {
    const declared = ((statement.declaration as Node | null | undefined) ?? statement) as Node
    if (declared.type === "FunctionDeclaration") return [nameOf(declared) ?? ""]
    if (declared.type !== "VariableDeclaration") return []
    return (declared.declarations as ReadonlyArray<Node>)
      .filter(({ init }) => (init as Node | null)?.type === "ArrowFunctionExpression")
      .map((declarator) => nameOf(declarator) ?? "")
  })
