/** `pnpm release`, in a small repository of its own and against a registry in memory: what it refuses, what a dry run leaves, and how a release that was cut off goes on. */
import { execFile, execFileSync } from "node:child_process"
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { isPublished } from "../../scripts/release/registry.ts"
import { readChanges, writeVersion } from "../../scripts/release/versions.ts"
import { type Registry, startRegistry } from "./registry.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const work = mkdtempSync(join(tmpdir(), "eventbus-releases-"))
const identity = {
  AUTHOR_NAME: "A",
  AUTHOR_EMAIL: "a@example.com",
  COMMITTER_NAME: "A",
  COMMITTER_EMAIL: "a@example.com"
}
const environment = {
  ...process.env,
  ...Object.fromEntries(Object.entries(identity).map(([name, value]) => [`GIT_${name}`, value]))
}

let registry: Registry
beforeAll(async () => {
  registry = await startRegistry()
})
afterAll(() => {
  registry.close()
  rmSync(work, { recursive: true, force: true })
})

const git = (cwd: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", args, { cwd, encoding: "utf8", env: environment }).trim()

const commitAll = (cwd: string): void => {
  git(cwd, "add", "--all")
  git(cwd, "commit", "--quiet", "--message", "Change")
}

/** The check of the small repository: it packs as that of this one does, and fails where a file `broken` exists. */
const check = `
import { execFileSync } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
if (existsSync("broken")) throw new Error("dist/index.js is missing")
for (const name of ["billing", "core"]) {
  const args = ["-cf", "-", "--mtime=@0", "--transform=s,^,package/,", "package.json"]
  writeFileSync(join(process.argv[3], name + ".tgz"), gzipSync(execFileSync("tar", args, { cwd: join("packages", name) })))
}
`

/** A repository with two published packages, of which the first in the alphabet needs the second, a private one and a changeset. */
const repository = (changes: Record<string, string | undefined> = {}): string => {
  const folder = mkdtempSync(join(work, "repository-"))
  const manifest = (name: string, more: object) =>
    JSON.stringify({ name: `@eventbus/${name}`, version: "0.1.0", type: "module", license: "MIT", ...more })
  const files: Record<string, string | undefined> = {
    "package.json": JSON.stringify({ name: "small", private: true }),
    "pnpm-workspace.yaml": "packages:\n  - packages/*\nautoInstallPeers: false\n",
    "pnpm-lock.yaml": [
      "lockfileVersion: '9.0'",
      "settings:\n  autoInstallPeers: false\n  excludeLinksFromLockfile: false",
      "importers:\n  .: {}\n  packages/billing: {}\n  packages/core: {}\n  packages/examples: {}\n"
    ].join("\n"),
    ".gitignore": "node_modules\n",
    ".changeset/config.json": readFileSync(join(root, ".changeset/config.json"), "utf8"),
    ".changeset/doors.md": '---\n"@eventbus/core": minor\n---\n\nDoors close.\n',
    "CHANGELOG.md": "# Changes\n\n## 0.1.0\n\nThe first version.\n",
    "docs/releases/upgrade-0.2.0.md": "# Upgrade\n",
    "scripts/checkPackages.ts": check,
    "packages/core/package.json": manifest("core", {}),
    "packages/core/src/internal/version.ts": 'export const version = "0.1.0"\n',
    "packages/billing/package.json": manifest("billing", { peerDependencies: { "@eventbus/core": "*" } }),
    "packages/examples/package.json": manifest("examples", { private: true }),
    ...changes
  }
  for (const [path, text] of Object.entries(files)) {
    if (text === undefined) continue
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  git(folder, "init", "--quiet")
  commitAll(folder)
  return folder
}

/** The exit code and the output of a release. */
const release = (folder: string, server: Registry, ...flags: ReadonlyArray<string>) =>
  new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
    const args = [join(root, "scripts/release.ts"), "--root", folder, "--registry", server.url, ...flags]
    // npm reads the settings of the folder that it runs in.
    const cwd = mkdtempSync(join(work, "login-"))
    writeFileSync(join(cwd, ".npmrc"), server.login)
    execFile(process.execPath, args, { cwd, env: environment }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr })
    )
  })

/** Commit, changes and tags: a refused release has touched none of them. */
const state = (folder: string): string =>
  [git(folder, "rev-parse", "HEAD"), git(folder, "status", "--porcelain"), git(folder, "tag")].join("|")

// Each release starts git, pnpm and npm several times.
describe("RCH-13 pnpm release", { timeout: 180_000 }, () => {
  it.concurrent.each([
    ["a tree with changes that no commit holds", {}, "The tree has changes that no commit holds", true],
    ["a tree without a changeset", { ".changeset/doors.md": undefined }, "There is no changeset", false],
    [
      "a version without its upgrade page",
      { "docs/releases/upgrade-0.2.0.md": undefined },
      "docs/releases/upgrade-0.2.0.md is missing",
      false
    ],
    ["packages whose check fails", { broken: "yes" }, "dist/index.js is missing", false]
  ])("refuses %s", async (_, changes, reason, isDirty) => {
    const folder = repository(changes)
    if (isDirty) writeFileSync(join(folder, "new.txt"), "new")
    const before = state(folder)
    const { code, output } = await release(folder, registry)
    expect(output).toContain(`Not released. `)
    expect(output).toContain(reason)
    expect(code).toBe(1)
    expect(state(folder)).toBe(before)
    expect(registry.published).toEqual([])
  })

  it.concurrent("a dry run says what it would publish, uploads nothing and leaves the repository as it was", async () => {
    const folder = repository()
    const before = state(folder)
    const { code, output } = await release(folder, registry, "--dry-run")
    expect(output).toMatch(/would publish @eventbus\/core@0\.2\.0\nwould publish @eventbus\/billing@0\.2\.0\n/)
    expect(code).toBe(0)
    expect(state(folder)).toBe(before)
    expect(registry.published).toEqual([])
  })

  it.concurrent("a release that the registry cut off goes on from the same commit, publishes each package once, and only then moves the branch and its tag", async () => {
    const folder = repository()
    const before = state(folder)
    const server = await startRegistry()
    server.refuseOnce("@eventbus/billing")
    const cut = await release(folder, server)
    expect(cut.code).toBe(1)
    expect(state(folder)).toBe(before)
    const { code, output } = await release(folder, server)
    server.close()
    expect(output).toContain("Released v0.2.0")
    expect(code).toBe(0)
    expect(server.published).toEqual(["@eventbus/core@0.2.0", "@eventbus/billing@0.2.0"])
    expect(git(folder, "log", "-1", "--format=%s %D")).toMatch(/^Release 0\.2\.0 .*tag: v0\.2\.0/)
    expect(git(folder, "status", "--porcelain")).toBe("")
    expect(readFileSync(join(folder, "CHANGELOG.md"), "utf8")).toBe(
      "# Changes\n\n## 0.2.0\n\n[How to upgrade](docs/releases/upgrade-0.2.0.md)\n\n### `@eventbus/core`\n\nDoors close.\n\n## 0.1.0\n\nThe first version.\n"
    )
    expect((await release(folder, server)).output).toContain("There is no changeset")
  })
})

it("RCH-13 a version that the registry has with other content is refused, and so is a registry without an answer", async () => {
  const server = await startRegistry()
  const path = join(work, "door.tgz")
  writeFileSync(path, "door")
  const tarball = { name: "@eventbus/door", version: "0.2.0", path, needs: [] }
  server.occupy(tarball.name, "0.2.0")
  await expect(isPublished(tarball, server.url)).rejects.toThrow("@eventbus/door@0.2.0 exists with other content")
  server.close()
  // npm answers from its cache for a package that it has seen.
  const unseen = { ...tarball, name: "@eventbus/gate" }
  await expect(isPublished(unseen, server.url)).rejects.toThrow(
    "The registry does not say whether @eventbus/gate@0.2.0"
  )
})

it("RCH-13 a change of one package gives all published packages of this workspace, and the modules that repeat it, one new version; private ones keep theirs", async () => {
  const folder = join(work, "manifests")
  for (const path of globSync(
    [
      "package.json",
      "pnpm-workspace.yaml",
      ".changeset/config.json",
      "packages/*/package.json",
      "packages/*/src/internal/version.ts"
    ],
    { cwd: root }
  ))
    cpSync(join(root, path), join(folder, path), { recursive: true })
  const versions = (pattern: string) =>
    globSync(pattern, { cwd: folder }).map(
      (path) => /version"?[ =:]+"([^"]*)"/.exec(readFileSync(join(folder, path), "utf8"))?.[1]
    )
  const isPrivate = (path: string) => JSON.parse(readFileSync(join(folder, path), "utf8")).private === true
  const [current] = versions("packages/core/package.json")
  writeFileSync(join(folder, "CHANGELOG.md"), "# Changes\n")
  writeFileSync(join(folder, ".changeset/one.md"), '---\n"@eventbus/redis": patch\n---\n\nA key is read once.\n')
  const next = writeVersion(folder, await readChanges(folder))
  expect(next).not.toBe(current)
  const manifests = globSync("packages/*/package.json", { cwd: folder })
  expect(manifests.filter(isPrivate).length).toBeGreaterThan(0)
  for (const path of manifests) expect(versions(path), path).toEqual([isPrivate(path) ? current : next])
  // The admin API and connections of our own tell their version.
  expect(versions("packages/*/src/internal/version.ts")).toEqual([next, next])
  expect(readFileSync(join(folder, "CHANGELOG.md"), "utf8")).toBe(
    `# Changes\n## ${next}\n\n### \`@eventbus/redis\`\n\nA key is read once.\n\n`
  )
})
