/** The modules that a program loads before its own code runs: each costs time at every start. */
import { execFile } from "node:child_process"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

const counting = `
import { registerHooks } from "node:module"
const urls = new Set()
registerHooks({ load: (url, context, next) => { urls.add(url); return next(url, context) } })
process.on("exit", () => console.log(JSON.stringify([...urls])))
`

/** The modules that these imports load, without Node's own. */
const loadedBy = async (...imports: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const program = imports.map((specifier) => `import "${specifier}"`).join("\n")
  const args = [
    "--import",
    `data:text/javascript,${encodeURIComponent(counting)}`,
    "--input-type=module",
    "-e",
    program
  ]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 2 ** 24 })
  const urls: ReadonlyArray<string> = JSON.parse(stdout)
  return urls.filter((url) => url.startsWith("file:"))
}

describe("the smallest program", () => {
  let modules: ReadonlyArray<string> = []
  beforeAll(async () => {
    modules = await loadedBy("@effect/platform-node/NodeRuntime", "@eventbus/core", "@eventbus/kafkajs")
  }, 60_000)

  it("RCH-02 loads no more modules than it did", () => {
    expect(modules.length).toBeLessThanOrEqual(855)
  })

  it("RCH-02 loads no HTTP client, which only OAuth needs", () => {
    expect(modules.filter((url) => /\/effect\/dist\/http\/.*HttpClient|\/tokenRequest\./.test(url))).toEqual([])
    expect(modules.filter((url) => /\/clientCredentials\./.test(url))).toHaveLength(1)
  })

  it("RCH-02 loads only the modules of Effect that the packages use", () => {
    const ofEffect = modules.filter((url) => url.includes("/node_modules/effect/"))
    expect(ofEffect.length).toBeLessThanOrEqual(170)
    expect(ofEffect.filter((url) => url.endsWith("/effect/dist/index.js"))).toEqual([])
  })
})

describe("documents and examples", () => {
  it("RCH-02 import NodeRuntime and its like alone, because the barrel loads a thousand modules", () => {
    const documents = ["README.md", "docs/**/*.md", "packages/*/README.md", "packages/*/src/**/*.ts"]
    const files = globSync(documents, { cwd: root })
    expect(files.length).toBeGreaterThan(100)
    const barrels = files.filter((file) => /from "@effect\/platform-node"/.test(readFileSync(join(root, file), "utf8")))
    expect(barrels).toEqual([])
  })
})
