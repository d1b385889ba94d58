import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const readJson = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"))

const packages = globSync("packages/*/package.json", { cwd: root }).map((path) => ({
  folder: dirname(path),
  manifest: readJson(path)
}))
const publishable = packages.filter(({ manifest }) => manifest.private !== true)

/** What an export of the sources becomes in the published package. */
const published = (target: string | null) => {
  if (target === null) return null
  const compiled = target.replace("./src/", "./dist/").replace(/\.ts$/, "")
  return { types: `${compiled}.d.ts`, default: `${compiled}.js` }
}

describe("the workspace", () => {
  it.each([
    ...["package.json", "tsconfig.json", "pnpm-workspace.yaml", "README.md", "LICENSE"],
    ...["packages", "test", "docs"]
  ])("CARD-02: its root holds %s", (name) => {
    expect(existsSync(join(root, name))).toBe(true)
  })

  it.each(packages)("type-checks $folder with everything else", ({ folder }) => {
    const { references } = readJson("tsconfig.json")
    expect(references.map((reference: { readonly path: string }) => reference.path)).toContain(folder)
  })

  it.each(packages)("pins every dependency of $folder exactly", ({ manifest }) => {
    const loose = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }).filter(
      ([, version]) => !/^(\d+\.\d+\.\d+|workspace:[*^])/.test(String(version))
    )
    expect(loose).toEqual([])
  })

  it.each(publishable)("publishes of $folder what its sources export, and no internals", ({ manifest }) => {
    const { exports, publishConfig } = manifest
    const paths = Object.keys(exports)
    expect(publishConfig.exports).toEqual(Object.fromEntries(paths.map((path) => [path, published(exports[path])])))
    if (paths.includes("./*")) expect(exports["./internal/*"]).toBe(null)
  })

  it.each(publishable)("lets every importer of the root resolve $manifest.name", ({ manifest }) => {
    expect(readJson("package.json").devDependencies).toHaveProperty(manifest.name)
  })

  it.each(["core", "testkit", "outbox", "redis"])(
    "CARD-12: %s waits and tells the time by Effect's clock alone",
    (name) => {
      const sources = globSync(`packages/${name}/src/**/*.ts`, { cwd: root })
      expect(sources.length).toBeGreaterThan(0)
      const ofThePlatform = /\b(setTimeout|setInterval)\(|\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bhrtime\b/
      expect(sources.filter((path) => ofThePlatform.test(readFileSync(join(root, path), "utf8")))).toEqual([])
    }
  )
})
