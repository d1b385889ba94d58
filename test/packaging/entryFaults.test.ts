/** The check of published packages refuses manifests that package managers, Node or TypeScript would misread. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { entryFaults } from "../../scripts/packages/entryFaults.ts"
import { doors, weightFaults } from "../../scripts/packages/installWeight.ts"

const work = mkdtempSync(join(tmpdir(), "eventbus-entries-"))
afterAll(() => rmSync(work, { recursive: true, force: true }))

const entry = { types: "./dist/index.d.ts", default: "./dist/index.js" }

const sound = {
  name: "@eventbus/door",
  version: "0.1.0",
  type: "module",
  license: "MIT",
  exports: { ".": entry } as Record<string, unknown>,
  files: ["dist"]
}

const code = {
  "dist/index.js": "export const shut = true\n",
  "dist/index.d.ts": "export declare const shut: boolean\n"
}

let count = 0

/** The faults of a package with these files and changes of the manifest. */
const faultsOf = (changes: Partial<typeof sound> & Record<string, unknown>, files: Record<string, string> = code) => {
  const manifest = { ...sound, ...changes }
  const folder = join(work, String(count++))
  const all = { ...files, "package.json": JSON.stringify(manifest) }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(join(folder, "package", dirname(path)), { recursive: true })
    writeFileSync(join(folder, "package", path), text)
  }
  const tarball = join(folder, "door.tgz")
  execFileSync("tar", ["-czf", tarball, "-C", folder, "package"])
  return entryFaults(manifest, tarball, ["."])
}

describe("RCH-13 the check of published packages", () => {
  it("finds nothing in a sound package of ES modules", async () => {
    expect(await faultsOf({})).toEqual([])
  })

  it.each([
    [
      "types that no compiler reaches, behind default",
      { exports: { ".": { default: entry.default, types: entry.types } } }
    ],
    ["a file that the package lacks", { exports: { ".": { types: entry.types, default: "./dist/main.js" } } }],
    ["ES modules that Node takes for CommonJS", { type: "commonjs" }]
  ])("publint refuses %s", async (_, changes) => {
    expect((await faultsOf(changes)).join("\n")).toMatch(/@eventbus\/door: publint: /)
  })

  it.each([
    [
      "declarations that import a path that Node does not resolve",
      {
        ...code,
        "dist/index.d.ts": 'export * from "./hinge"\n',
        "dist/hinge.d.ts": "export declare const shut: boolean\n"
      }
    ],
    [
      "an entry point without declarations",
      { "dist/index.js": code["dist/index.js"], "dist/other.d.ts": "export {}\n" }
    ]
  ])("'are the types wrong?' refuses %s", async (_, files) => {
    expect((await faultsOf({}, files)).join("\n")).toMatch(/@eventbus\/door: types: /)
  })

  it.each(doors)("the bounds of an installation of $name hold for packages and megabytes", (door) => {
    expect(weightFaults(door, door.most)).toEqual([])
    const { packages, megabytes } = door.most
    expect(weightFaults(door, { packages: packages + 1, megabytes: megabytes + 1 })).toEqual([
      `install of ${door.name}: ${packages + 1} packages, allowed are ${packages}`,
      `install of ${door.name}: ${megabytes + 1} megabytes, allowed are ${megabytes}`
    ])
  })
})
