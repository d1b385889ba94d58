/** The build of a package that Node loads: few modules, the same exports, one copy of everything. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { nodeFolder, writeNodeBuild } from "../../scripts/packages/nodeBuild.ts"

const folder = mkdtempSync(join(import.meta.dirname, "../../node_modules/.node-build-"))
const at = (path: string) => join(folder, nodeFolder, path)

beforeAll(async () => {
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const exports = { ".": "", "./internal/*": null, "./presets/*": "", "./schema.json": "", "./*": "" }
  const peerDependenciesMeta = { "peer-that-is-missing": { optional: true } }
  write("package.json", JSON.stringify({ name: "sample", type: "module", exports, peerDependenciesMeta }))
  write("dist/index.js", 'export * as First from "./First.js"\nexport * as Second from "./Second.js"\n')
  write("dist/First.js", 'export { shared } from "./internal/shared.js"\nexport const make = () => "first"\n')
  write("dist/Second.js", 'export { shared } from "./internal/shared.js"\nexport const make = () => "second"\n')
  write(
    "dist/WithPeer.js",
    'export { shared } from "./internal/shared.js"\nexport * from "peer-that-is-missing/Part"\n'
  )
  write("dist/presets/Quick.js", 'export { shared } from "../internal/shared.js"\n')
  write("dist/internal/shared.js", 'export const shared = {}\nexport const later = () => import("./lazy.js")\n')
  write("dist/internal/lazy.js", 'export { shared } from "./shared.js"\n')
  await writeNodeBuild(folder)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the build for Node", () => {
  it("RCH-02 exports what each public module exports, and nothing else", async () => {
    const index = await import(at("index.js"))
    expect(Object.keys(index)).toEqual(["First", "Second"])
    expect(Object.keys(await import(at("First.js")))).toEqual(["make", "shared"])
    expect([index.First.make(), (await import(at("Second.js"))).make()]).toEqual(["first", "second"])
  })

  it("RCH-02 holds one copy of what several modules share", async () => {
    const { shared } = await import(at("First.js"))
    const others = [await import(at("Second.js")), await import(at("presets/Quick.js"))]
    for (const other of others) expect(other.shared).toBe(shared)
  })

  it("RCH-02 is loaded without an optional peer, which one public module needs", async () => {
    expect(Object.keys(await import(at("index.js")))).toEqual(["First", "Second"])
    await expect(import(at("WithPeer.js"))).rejects.toThrow("peer-that-is-missing")
  })

  it("RCH-02 has a file for each public module, and one for all that they hold", () => {
    const files = readdirSync(join(folder, nodeFolder), { recursive: true, withFileTypes: true })
    const names = files.filter((file) => file.isFile() && file.name.endsWith(".js")).map(({ name }) => name)
    expect(names.filter((name) => !name.startsWith("part-")).sort()).toEqual([
      ...["First.js", "Quick.js", "Second.js", "WithPeer.js", "all.js", "index.js"]
    ])
  })
})
