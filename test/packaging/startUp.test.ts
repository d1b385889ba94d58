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
const loadedBy = (...imports: ReadonlyArray<string>): Promise<ReadonlyArray<string>> =>
  loadedByProgram(imports.map((specifier) => `import "${specifier}"`).join("\n"))

/** The modules that a program loads until it ends, without Node's own. */
const loadedByProgram = async (program: string): Promise<ReadonlyArray<string>> => {
  const args = [
    "--import",
    `data:text/javascript,${encodeURIComponent(counting)}`,
    "--input-type=module",
    "-e",
    program
  ]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 2 ** 24 })
  const urls: ReadonlyArray<string> = JSON.parse(stdout.trimEnd().split("\n").at(-1)!)
  return urls.filter((url) => url.startsWith("file:"))
}

describe("the smallest program", () => {
  let modules: ReadonlyArray<string> = []
  beforeAll(async () => {
    modules = await loadedBy("@effect/platform-node/NodeRuntime", "@eventbus/core", "@eventbus/kafkajs")
  }, 60_000)

  it("RCH-02 loads no more modules than it did", () => {
    expect(modules.length).toBeLessThanOrEqual(864)
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

/** The transports of which a program loads a module. */
const transportsOf = (modules: ReadonlyArray<string>): ReadonlyArray<string> =>
  ["kafkajs", "kafka"].filter((name) => modules.some((url) => url.includes(`/packages/${name}/src/`)))

/** Nobody listens at the address, which a bus that has nothing to do does not ask. */
const busOn = (options: string) => `
import { createEventBus } from "@eventbus/node"
const bus = createEventBus({ kafka: { brokers: ["127.0.0.1:9"]${options} }, log: "off", signals: [] })
await bus.start()
await bus.stop()
`

const commandOn = (...flags: ReadonlyArray<string>) => `
process.argv = ["node", "eventbus", "plan", "packages/examples/config/minimal.yml", "--brokers", "127.0.0.1:9", ...${JSON.stringify(flags)}]
process.on("exit", () => { process.exitCode = 0 })
await import("./packages/cli/src/main.ts")
`

describe("a transport that is not used", () => {
  const programs: ReadonlyArray<readonly [title: string, program: string, transports: ReadonlyArray<string>]> = [
    ["before a bus starts", 'import "@eventbus/node"', []],
    ["by a bus on the default", busOn(""), ["kafkajs"]],
    ["by a bus on kafkajs", busOn(', transport: "kafkajs"'), ["kafkajs"]],
    ["by a bus on kafka", busOn(', transport: "kafka"'), ["kafka"]],
    ["by a command on the default", commandOn(), ["kafkajs"]],
    ["by a command on kafka", commandOn("--transport", "kafka"), ["kafka"]]
  ]
  for (const [title, program, transports] of programs)
    it(`RCH-02 CLN-15 is not loaded ${title}`, async () => {
      const modules = await loadedByProgram(program)
      expect(transportsOf(modules)).toEqual(transports)
      expect(modules.some((url) => url.includes("/node_modules/kafkajs/"))).toBe(transports.includes("kafkajs"))
    }, 60_000)
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
