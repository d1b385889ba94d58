/**
 * Proves what a user installs: packs every publishable package, looks into each tarball, installs all of them into a project
 * outside the workspace, type-checks every public module there and runs `test/packaging/consumer/program.ts`.
 */
import { execFileSync } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly exports: Readonly<Record<string, unknown>>
  readonly files?: ReadonlyArray<string>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

interface Packed {
  readonly manifest: Manifest
  /** The package's folder in the workspace. */
  readonly source: string
  readonly tarball: string
  /** The unpacked tarball. */
  readonly folder: string
}

const root = fileURLToPath(new URL("..", import.meta.url))
const work = mkdtempSync(join(tmpdir(), "eventbus-packages-"))
process.once("exit", () => rmSync(work, { recursive: true, force: true }))

const readManifest = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))

const run = (command: string, args: ReadonlyArray<string>, cwd: string): string =>
  execFileSync(command, [...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })

const pack = (source: string): Packed => {
  const { name } = readManifest(source)
  const folder = join(work, basename(source))
  const tarball = `${folder}.tgz`
  run("pnpm", ["pack", "--out", tarball], source)
  mkdirSync(folder)
  run("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"], work)
  console.log(`packed ${name}`)
  return { manifest: readManifest(folder), source, tarball, folder }
}

/** The modules that a source folder compiles to, without extension. */
const modules = (folder: string): ReadonlyArray<string> =>
  globSync("**/*.ts", { cwd: folder })
    .filter((file) => !file.endsWith(".d.ts"))
    .map((file) => file.slice(0, -".ts".length))
    .sort()

/** A file that a package gives out as it is. */
const isData = (path: string): boolean => path.endsWith(".json")

/** Every path that the exports map of the tarball names. */
const exportTargets = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" ? [value] : Object.values(value ?? {}).flatMap(exportTargets)

/** The faults in the content of a tarball. */
const faults = ({ manifest, source, folder }: Packed): ReadonlyArray<string> => {
  const present = new Set(globSync("**/*", { cwd: folder, withFileTypes: false }))
  const compiled = modules(join(source, "src")).flatMap((name) =>
    [".js", ".js.map", ".d.ts", ".d.ts.map"].map((extension) => join("dist", `${name}${extension}`))
  )
  const required = ["package.json", "LICENSE", "README.md", ...compiled]
  const missing = required.filter((file) => !present.has(file)).map((file) => `${file} is missing`)
  const stale = globSync("dist/**/*.{js,ts,map,tsbuildinfo}", { cwd: folder })
    .filter((file) => !compiled.includes(file))
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
  const internals =
    manifest.exports["./internal/*"] === null || !("./*" in manifest.exports) ? [] : ["internals are not closed"]
  const workspace = JSON.stringify(manifest).includes('"workspace:') ? ["a dependency is still workspace:"] : []
  return [...missing, ...stale, ...foreign, ...open, ...internals, ...workspace].map(
    (fault) => `${manifest.name}: ${fault}`
  )
}

/** The public modules of a package, as a user imports them. */
const publicModules = ({ manifest, source }: Packed): ReadonlyArray<string> =>
  Object.keys(manifest.exports).flatMap((path) => {
    if (manifest.exports[path] === null || isData(path)) return []
    const names = path.includes("*")
      ? modules(join(source, "src")).filter((name) => !name.includes("/"))
      : [path.slice(2)]
    return names.map((name) => [manifest.name, name].filter((part) => part !== "").join("/"))
  })

/** Peers of the packages, in the versions that the workspace itself is tested with. */
const peers = (packages: ReadonlyArray<Packed>): Record<string, string> => {
  const pinned = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).devDependencies
  const names = packages.flatMap(({ manifest }) => Object.keys(manifest.peerDependencies ?? {}))
  return Object.fromEntries([...names, "typescript", "@types/node"].map((name) => [name, pinned[name] ?? "*"]))
}

const consume = (packages: ReadonlyArray<Packed>): void => {
  const consumer = join(work, "consumer")
  mkdirSync(consumer)
  const write = (name: string, text: string) => writeFileSync(join(consumer, name), text)
  const tarballs = Object.fromEntries(packages.map(({ manifest, tarball }) => [manifest.name, `file:${tarball}`]))
  const dependencies = { ...peers(packages), ...tarballs }
  write("package.json", JSON.stringify({ name: "consumer", private: true, type: "module", dependencies }))
  const compilerOptions = { target: "ES2024", module: "NodeNext", strict: true, noEmit: true, types: ["node"] }
  write("tsconfig.json", JSON.stringify({ compilerOptions }))
  const everything = packages.flatMap(publicModules).map((name, index) => `import * as m${index} from "${name}"`)
  write(
    "everything.ts",
    `${everything.join("\n")}\nexport const all = [${everything.map((_, index) => `m${index}`)}]\n`
  )
  write("indexes.ts", packages.map(({ manifest }) => `import "${manifest.name}"\n`).join(""))
  copyFileSync(join(root, "test/packaging/consumer/program.ts"), join(consumer, "program.ts"))

  run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"], consumer)
  const duplicates = globSync("node_modules/**/node_modules/@eventbus/*", { cwd: consumer })
  if (duplicates.length > 0) throw new Error(`packages were installed twice: ${duplicates.join(", ")}`)
  console.log(`type-checking ${everything.length} public modules`)
  run(join(consumer, "node_modules/.bin/tsc"), ["-p", "."], consumer)
  run(process.execPath, ["indexes.ts"], consumer)
  process.stdout.write(run(process.execPath, ["program.ts"], consumer))
  process.stdout.write(run(join(consumer, "node_modules/.bin/eventbus"), ["--version"], consumer))
}

const publishable = globSync("packages/*/package.json", { cwd: root })
  .map((manifest) => join(root, dirname(manifest)))
  .filter((folder) => existsSync(join(folder, "src")) && readManifest(folder).private !== true)
  .sort()
const packages = publishable.map(pack)
const allFaults = packages.flatMap(faults)
for (const fault of allFaults) console.error(fault)
if (allFaults.length === 0) consume(packages)
else process.exitCode = 1
