/**
 * Builds the documentation as a site and checks the links of the built pages.
 *
 *   node scripts/buildSite.ts [--out FOLDER] [--repository URL]      default: dist/site, and links to sources are plain text
 */
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { buildSite } from "./site/buildSite.ts"
import { checkBuilt } from "./site/checkBuilt.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const { values } = parseArgs({ options: { out: { type: "string" }, repository: { type: "string" } } })
const out = values.out === undefined ? join(root, "dist/site") : resolve(values.out)

buildSite({ root, out, ...(values.repository === undefined ? {} : { repository: values.repository }) })
const { faults, pages, links } = checkBuilt(out)
for (const fault of faults) console.error(fault)
console.log(`Site: ${pages} pages in ${out}; ${links} links, of which ${faults.length} lead to nothing.`)
process.exitCode = faults.length > 0 ? 1 : 0
