/**
 * Releases all packages: versions them by their changesets, packs and checks them in a clone of its own, publishes them, and only then adds the commit and its tag to this
 * repository. A release that is cut off leaves the repository as it was: run from the same commit again, it skips tarballs that the registry has already.
 *
 *   node scripts/release.ts [--dry-run] [--registry URL] [--root FOLDER]
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { command, git, pnpm, Refusal } from "./release/command.ts"
import { isPublished, publish, readTarballs, type Tarball } from "./release/registry.ts"
import { readChanges, writeVersion } from "./release/versions.ts"

interface Options {
  readonly root: string
  readonly registry: string | undefined
  readonly isDryRun: boolean
}

const say = (text: string): void => console.log(text)

const refuseDirtyTree = (root: string): void => {
  const changes = git(root, "status", "--porcelain")
  if (changes !== "") throw new Refusal(`The tree has changes that no commit holds. Commit or stash them:\n${changes}`)
}

/** Makes the release commit in the clone, and gives its tag. */
const commitVersion = async (clone: string): Promise<string> => {
  const version = writeVersion(clone, await readChanges(clone))
  git(clone, "add", "--all")
  git(clone, "commit", "--quiet", "--message", `Release ${version}`)
  git(clone, "tag", `v${version}`)
  say(`version ${version}`)
  return `v${version}`
}

/** Packs and checks all packages of the clone. */
const checkedTarballs = (clone: string, folder: string): ReadonlyArray<Tarball> => {
  mkdirSync(folder)
  pnpm(clone, "install", "--frozen-lockfile", "--prefer-offline")
  command(process.execPath, ["scripts/checkPackages.ts", "--out", folder], clone)
  const tarballs = readTarballs(folder)
  say(`packed and checked ${tarballs.length} packages`)
  return tarballs
}

const release = async ({ root, registry, isDryRun }: Options, work: string): Promise<void> => {
  refuseDirtyTree(root)
  await readChanges(root)
  const clone = join(work, "clone")
  git(root, "clone", "--quiet", "--no-hardlinks", root, clone)
  const tag = await commitVersion(clone)
  const tarballs = checkedTarballs(clone, join(work, "tarballs"))
  // All are asked for before the first is published.
  const answers = await Promise.all(tarballs.map((tarball) => isPublished(tarball, registry)))
  const waiting = tarballs.filter((_, index) => !answers[index])
  for (const tarball of waiting) {
    publish(tarball, registry, isDryRun)
    say(`${isDryRun ? "would publish" : "published"} ${tarball.name}@${tarball.version}`)
  }
  if (isDryRun)
    return say(`Dry run: nothing was published, and the repository is as it was. The release would be ${tag}.`)
  git(root, "fetch", "--quiet", clone, `refs/tags/${tag}:refs/tags/${tag}`)
  git(root, "merge", "--quiet", "--ff-only", tag)
  say(`Released ${tag}. Push it: git push --follow-tags`)
}

const main = async (): Promise<void> => {
  const work = mkdtempSync(join(tmpdir(), "eventbus-release-"))
  try {
    const { values } = parseArgs({
      options: { "dry-run": { type: "boolean" }, registry: { type: "string" }, root: { type: "string" } }
    })
    const root = values.root === undefined ? fileURLToPath(new URL("..", import.meta.url)) : resolve(values.root)
    await release({ root, registry: values.registry, isDryRun: values["dry-run"] === true }, work)
  } catch (error) {
    const isExpected =
      error instanceof Refusal || (error as { readonly code?: string }).code?.startsWith("ERR_PARSE_ARGS")
    console.error(isExpected ? `Not released. ${(error as Error).message}` : error)
    process.exitCode = 1
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

await main()
