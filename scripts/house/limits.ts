/**
 * At most 70 code lines a function and 300 lines a file. Blank lines and comment lines of a function are not counted.
 *
 * A comment `Over 70 lines: <reason>` right before a function, or before the statement that holds it, exempts this function by name.
 * A file has no exemption.
 */
import { globSync } from "node:fs"
import type { Check, Violation } from "./report.ts"
import { docstringText, type Node, nameOf, readSource, type SourceFile, walk } from "./sourceFile.ts"

const maxFunctionLines = 70
const maxFileLines = 300

/** Tests are lists of cases, so their limit is the linter's; files that tests share are code. */
const files = [
  "packages/*/src/**/*.ts",
  "packages/admin/{console,scripts}/**/*.{ts,tsx}",
  "packages/*/test/**/*.ts",
  "test/**/*.ts",
  "scripts/**/*.ts"
]
const isTest = (path: string): boolean => path.endsWith(".test.ts")

const functionTypes = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"])

export const limits: Check = (root) => {
  const paths = globSync(files, { cwd: root })
    .filter((path) => !isTest(path))
    .sort()
  const sources = paths.map((path) => readSource(root, path))
  let functions = 0
  const exempt: Array<string> = []
  const violations = sources.flatMap((file): ReadonlyArray<Violation> => {
    const found: Array<Violation> = []
    const lines = file.text.replace(/\n$/, "").split("\n").length
    if (lines > maxFileLines) found.push({ file: file.path, message: `${lines} lines, allowed are ${maxFileLines}` })
    walk(file.body, (node, above) => {
      if (!functionTypes.has(node.type)) return
      functions++
      const length = file.codeLines(node.start, node.end)
      if (length <= maxFunctionLines) return
      const name = functionName(node, above)
      if (isExempt(file, node, above)) exempt.push(`${file.path} ${name}`)
      else
        found.push({
          file: file.path,
          line: file.lineAt(node.start),
          message: `${name} has ${length} code lines, allowed are ${maxFunctionLines}`
        })
    })
    return found
  })
  return {
    violations,
    summary: `${functions} functions in ${sources.length} files; exempt by name: ${exempt.length === 0 ? "none" : exempt.join(", ")}`
  }
}

/** The function's own name, or that of what it is given to. */
const functionName = (node: Node, above: ReadonlyArray<Node>): string =>
  nameOf(node) ?? above.map(nameOf).find((name) => name !== undefined) ?? "a function"

const isExempt = (file: SourceFile, node: Node, above: ReadonlyArray<Node>): boolean => {
  // Up to the statement or the property that holds the function, and not beyond the function around it.
  const end = above.findIndex(({ type }) => functionTypes.has(type) || type === "BlockStatement" || type === "Program")
  const holders = [node, ...(end === -1 ? above : above.slice(0, end))]
  return holders.some((holder) => {
    const comment = file.commentBefore(holder.start)
    return comment !== undefined && /\bOver 70 lines: \S/.test(docstringText(comment.value))
  })
}
