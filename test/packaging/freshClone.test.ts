/** The first commands of DEVELOPERS.md, in a folder that holds nothing but what the repository holds. */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const clone = mkdtempSync(join(tmpdir(), "eventbus-clone-"))

const run = (command: string, ...args: ReadonlyArray<string>) =>
  execFileSync(command, args, { cwd: clone, encoding: "utf8", stdio: "pipe", env: { ...process.env, CI: "" } })

afterAll(() => rmSync(clone, { recursive: true, force: true }))

describe("a fresh clone", () => {
  it("CARD-02 install, test and type check run from its root", { timeout: 600_000 }, () => {
    const tracked = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
      cwd: root,
      encoding: "utf8"
    })
    for (const path of tracked.split("\0")) {
      if (path === "" || !existsSync(join(root, path))) continue
      cpSync(join(root, path), join(clone, path), { recursive: true })
    }
    expect(existsSync(join(clone, "node_modules"))).toBe(false)
    // Nothing is downloaded that this folder's own installation has already.
    run("npx", "-y", "pnpm@10", "install", "--frozen-lockfile", "--prefer-offline")
    const tests = run("npx", "-y", "pnpm@10", "test", "packages/core/test/TopicName.test.ts")
    expect(tests).toMatch(/Tests .*[1-9]\d* passed/)
    run("npx", "-y", "pnpm@10", "check")
    expect(existsSync(join(clone, dirname("packages/core/dist/index.js")))).toBe(true)
  })
})
