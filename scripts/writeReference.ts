/**
 * Writes `docs/reference` anew, one page for each public module. Builds the declarations first, because types come from them.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { referencePages } from "./house/reference.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const build = spawnSync(join(root, "node_modules/.bin/tsc"), ["-b"], { cwd: root, stdio: "inherit" })
if (build.status !== 0) process.exit(1)

const pages = referencePages(root)
rmSync(join(root, "docs/reference"), { recursive: true, force: true })
for (const [path, content] of pages) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), content)
}
console.log(`Reference: ${pages.size} pages.`)
