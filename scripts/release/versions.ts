/** The next version: made of the changesets, and written into the manifests, the sources that repeat it, and the changelog. */
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { readChangesets } from "@changesets/read"
import { command, Refusal } from "./command.ts"

/** A change for users of some packages. */
export interface Change {
  readonly releases: ReadonlyArray<{ readonly name: string }>
  readonly summary: string
}

/** Reads the changesets of a tree. Refuses a tree without one. */
export const readChanges = async (root: string): Promise<ReadonlyArray<Change>> => {
  const changes = (await readChangesets(root)).filter(({ releases }) => releases.length > 0)
  if (changes.length > 0) return changes
  throw new Refusal(
    "There is no changeset, so nothing has changed for users. Describe the change in .changeset, as CONTRIBUTING.md says."
  )
}

/** The page that a release needs unless it is a patch, from the root of the tree. */
const upgradePage = (version: string): string => `docs/releases/upgrade-${version}.md`

const isPatch = (version: string): boolean => !version.endsWith(".0")

/** The section of the changelog: a heading for each set of packages, in the order of their names. */
const section = (version: string, changes: ReadonlyArray<Change>): string => {
  const entries = changes.map(({ releases, summary }) => ({
    names: releases
      .map(({ name }) => `\`${name}\``)
      .sort()
      .join(", "),
    summary: summary.trim()
  }))
  const parts = [...new Set(entries.map(({ names }) => names))]
    .sort()
    .map((heading) =>
      [`### ${heading}`, ...entries.filter(({ names }) => names === heading).map(({ summary }) => summary)].join("\n\n")
    )
  const upgrade = isPatch(version) ? [] : [`[How to upgrade](${upgradePage(version)})`]
  return [`## ${version}`, ...upgrade, ...parts].join("\n\n")
}

/** The version that every published package has. */
const commonVersion = (root: string): string => {
  const manifests = globSync("packages/*/package.json", { cwd: root }).map((path) =>
    JSON.parse(readFileSync(join(root, path), "utf8"))
  )
  const versions = new Set(manifests.filter((manifest) => manifest.private !== true).map(({ version }) => version))
  if (versions.size === 1) return [...versions][0]
  throw new Refusal(`All packages get one version; the changesets lead to ${[...versions].join(", ")}.`)
}

/** Modules that repeat the version of their package, since a bundle has no manifest beside it. */
const repeatVersion = (root: string, version: string): void => {
  for (const path of globSync("packages/*/src/internal/version.ts", { cwd: root })) {
    const file = join(root, path)
    writeFileSync(file, readFileSync(file, "utf8").replace(/(?<=version = ")[^"]*/, version))
  }
}

/** Writes version and changes into the tree, and gives the version. Refuses one without its upgrade page. */
export const writeVersion = (root: string, changes: ReadonlyArray<Change>): string => {
  const cli = fileURLToPath(import.meta.resolve("@changesets/cli/bin.js"))
  command(process.execPath, [cli, "version"], root)
  const version = commonVersion(root)
  if (!isPatch(version) && !existsSync(join(root, upgradePage(version))))
    throw new Refusal(
      `${upgradePage(version)} is missing. It says which formats change, in which order to roll out, and how to go back.`
    )
  repeatVersion(root, version)
  const file = join(root, "CHANGELOG.md")
  const changelog = readFileSync(file, "utf8")
  const first = changelog.search(/^## /m)
  const at = first === -1 ? changelog.length : first
  writeFileSync(file, `${changelog.slice(0, at)}${section(version, changes)}\n\n${changelog.slice(at)}`)
  return version
}
