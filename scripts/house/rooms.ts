/**
 * Every room, a folder of a package's `src/internal`, says in a README.md of at most ten lines what it owns, who calls it, and what it never does.
 */
import { existsSync, globSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"
import type { Check, Violation } from "./report.ts"

const maxLines = 10

export const rooms: Check = (root) => {
  const folders = globSync("packages/*/src/internal/*/*.ts", { cwd: root }).map((path) => posix.dirname(path))
  const distinct = [...new Set(folders)].sort()
  return {
    violations: distinct.flatMap((folder) => faultsOf(root, posix.join(folder, "README.md"))),
    summary: `${distinct.length} rooms`
  }
}

const faultsOf = (root: string, file: string): ReadonlyArray<Violation> => {
  if (!existsSync(join(root, file))) return [{ file, message: "is missing: it says what the room owns" }]
  const lines = readFileSync(join(root, file), "utf8").trimEnd().split("\n")
  if (lines.length > maxLines) return [{ file, message: `${lines.length} lines, allowed are ${maxLines}` }]
  return lines.some((line) => /\bnever\b/i.test(line))
    ? []
    : [{ file, message: "does not say what the room never does" }]
}
