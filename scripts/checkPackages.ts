/**
 * Proves what a user installs: packs every publishable package, looks into each tarball, judges its entry points as package managers and TypeScript do, weighs an
 * installation, installs all of them into a project outside the workspace, type-checks every public module there and runs `test/packaging/consumer/program.ts`. A service on
 * the other major version of NestJS follows.
 *
 *   node scripts/checkPackages.ts [--out FOLDER]      FOLDER: where the tarballs stay; default: nowhere
 */
import { existsSync, globSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { consume } from "./packages/consume.ts"
import { contentFaults } from "./packages/contentFaults.ts"
import { entryFaults } from "./packages/entryFaults.ts"
import { doors, weigh, weightFaults } from "./packages/installWeight.ts"
import { serveOtherNest } from "./packages/otherNest.ts"
import { entryPoints, pack, readManifest } from "./packages/packed.ts"

const { values } = parseArgs({ options: { out: { type: "string" } } })
const root = fileURLToPath(new URL("..", import.meta.url))
const work = mkdtempSync(join(tmpdir(), "eventbus-packages-"))
process.once("exit", () => rmSync(work, { recursive: true, force: true }))
const tarballs = values.out === undefined ? work : resolve(values.out)
mkdirSync(tarballs, { recursive: true })

const publishable = globSync("packages/*/package.json", { cwd: root })
  .map((manifest) => join(root, dirname(manifest)))
  .filter((folder) => existsSync(join(folder, "src")) && readManifest(folder).private !== true)
  .sort()
const packages = publishable.map((source) => pack(source, tarballs, work))
const faults = packages.flatMap(contentFaults)
for (const packed of packages) faults.push(...(await entryFaults(packed.manifest, packed.tarball, entryPoints(packed))))
if (faults.length === 0) for (const door of doors) faults.push(...weightFaults(door, weigh(door, packages, root, work)))
for (const fault of faults) console.error(fault)
if (faults.length === 0) {
  consume(packages, root, work)
  serveOtherNest(packages, root, work)
} else process.exitCode = 1
