/** Faults in the content of a tarball: files that it lacks, and files that it holds without reason. */
import { globSync } from "node:fs"
import { join } from "node:path"
import { nodeFolder } from "./nodeBuild.ts"
import { isData, modules, type Packed } from "./packed.ts"

/** Every path that the exports map of the tarball names. */
const exportTargets = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" ? [value] : Object.values(value ?? {}).flatMap(exportTargets)

/** The faults in the content of a tarball. */
export const contentFaults = ({ manifest, source, folder }: Packed): ReadonlyArray<string> => {
  const present = new Set(globSync("**/*", { cwd: folder, withFileTypes: false }))
  const compiled = modules(join(source, "src")).flatMap((name) =>
    [".js", ".js.map", ".d.ts", ".d.ts.map"].map((extension) => join("dist", `${name}${extension}`))
  )
  const required = ["package.json", "LICENSE", "README.md", ...compiled]
  const missing = required.filter((file) => !present.has(file)).map((file) => `${file} is missing`)
  const stale = globSync("dist/**/*.{js,ts,map,tsbuildinfo}", { cwd: folder })
    .filter((file) => !compiled.includes(file) && !file.startsWith(`${nodeFolder}/`))
    .map((file) => `${file} comes from no source file`)
  const named = ["package.json", ...(manifest.files ?? [])]
  const foreign = [...present]
    .filter((file) => !named.some((name) => file === name || file.startsWith(`${name}/`)))
    // A folder on the way to a file that is named.
    .filter((file) => !named.some((name) => name.startsWith(`${file}/`)))
    .map((file) => `${file} does not belong into the package`)
  const open = exportTargets(manifest.exports)
    .filter((target) => !target.startsWith("./dist/") && !isData(target))
    .map((target) => `exports lead to ${target}, not to dist`)
  const dead = exportTargets(manifest.exports)
    .filter((target) => target.startsWith(`./${nodeFolder}/`) && globSync(target, { cwd: folder }).length === 0)
    .map((target) => `exports lead to ${target}, which is missing`)
  const internals =
    manifest.exports["./internal/*"] === null || !("./*" in manifest.exports) ? [] : ["internals are not closed"]
  const workspace = JSON.stringify(manifest).includes('"workspace:') ? ["a dependency is still workspace:"] : []
  return [...missing, ...stale, ...foreign, ...open, ...dead, ...internals, ...workspace].map(
    (fault) => `${manifest.name}: ${fault}`
  )
}
