/**
 * Checks the rules of the house that neither the compiler nor the linter knows.
 *
 *   node scripts/checkHouse.ts [limits ...] [--root FOLDER]      default: every check, on this tree
 */
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { citations } from "./house/citations.ts"
import { docstrings } from "./house/docstrings.ts"
import { limits } from "./house/limits.ts"
import { links } from "./house/links.ts"
import { passingOn } from "./house/passingOn.ts"
import { reference } from "./house/reference.ts"
import { type Check, violationText } from "./house/report.ts"
import { rooms } from "./house/rooms.ts"
import { sentences } from "./house/sentences.ts"
import { unusedExports } from "./house/unusedExports.ts"
import { privateWords } from "./house/words.ts"

const checks: Readonly<Record<string, Check>> = {
  limits,
  docstrings,
  "unused-exports": unusedExports,
  "passing-on": passingOn,
  citations,
  words: privateWords,
  sentences,
  links,
  rooms,
  reference
}

const { positionals, values } = parseArgs({ allowPositionals: true, options: { root: { type: "string" } } })
const root = values.root === undefined ? fileURLToPath(new URL("..", import.meta.url)) : resolve(values.root)

for (const name of positionals.length > 0 ? positionals : Object.keys(checks)) {
  const check = checks[name]
  if (check === undefined) throw new Error(`there is no check '${name}'; there are: ${Object.keys(checks).join(", ")}`)
  const { violations, summary } = check(root)
  for (const violation of violations) console.error(violationText(violation))
  console.log(`${name}: ${violations.length} violations. ${summary}`)
  if (violations.length > 0) process.exitCode = 1
}
