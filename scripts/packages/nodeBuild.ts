/**
 * The build of a package that Node loads: all modules of `dist` in one file, and a file for each public module that passes its exports on. Node spends half a
 * millisecond on each ES module, so a package of 370 modules would delay every start by a fifth of a second. A public module that imports an optional peer stays a file of its own,
 * since the peer may be missing. Bundlers take the single modules (condition `module` of the exports map),
 * of which they leave out what a program does not use.
 *
 *   node scripts/packages/nodeBuild.ts      in the folder of a package whose dist is compiled
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { type BuildOptions, build, type Plugin } from "esbuild"
import { isData, type Manifest } from "./packed.ts"

/** Where the build stands in a package. The exports map closes `./internal/*`, so nobody can import a part of it. */
export const nodeFolder = "dist/internal/node"

/** Refuses an old Node before Effect is loaded, which may fail on it without a reason: it stays a module of its own, which the build imports first. */
const nodeVersion = "internal/base/nodeVersion.js"

/** A public module of a package. */
interface PublicModule {
  /** Path in `dist` without extension: `index`, `Binding`, `presets/Financial`. */
  readonly path: string
  /** The names that it exports. */
  readonly names: ReadonlyArray<string>
  /** Whether it cannot be loaded without an optional peer. */
  readonly needsPeer: boolean
}

const optionalPeers = ({ peerDependenciesMeta = {} }: Manifest): ReadonlyArray<string> =>
  Object.keys(peerDependenciesMeta).filter((name) => peerDependenciesMeta[name]?.optional === true)

/** Where an export of a module stands in the one file. */
const nameIn = ({ path }: PublicModule, name: string): string => `${path.replace(/\W/g, "_")}$${name}`

const keepsNodeVersion = (dist: string): Plugin => ({
  name: "node version",
  setup: ({ onResolve }) =>
    onResolve({ filter: /nodeVersion\.js$/ }, () => ({
      path: `./${relative(join(dist, "internal/node"), join(dist, nodeVersion))}`,
      external: true
    }))
})

/** The entry point `all`, which is no file. */
const oneFile = (dist: string, contents: string): Plugin => ({
  name: "all",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^all$/ }, () => ({ path: "all.js", namespace: "all" }))
    onLoad({ filter: /./, namespace: "all" }, () => ({ contents, resolveDir: dist }))
  }
})

const options = (dist: string): BuildOptions => ({
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "es2024",
  logLevel: "warning",
  plugins: [keepsNodeVersion(dist)]
})

/** The public modules that the exports map names, as paths in `dist` without extension. */
const pathsOf = ({ exports }: Manifest, dist: string): ReadonlyArray<string> =>
  Object.keys(exports).flatMap((key) => {
    if (exports[key] === null || isData(key)) return []
    if (key === ".") return ["index"]
    const files = globSync(`${key.slice("./".length)}.js`, { cwd: dist })
    return files.map((file) => file.slice(0, -".js".length)).filter((path) => path !== "index")
  })

/** The public modules, with the names and the imports that esbuild finds in them. */
const publicModules = async (
  dist: string,
  paths: ReadonlyArray<string>,
  peers: ReadonlyArray<string>
): Promise<ReadonlyArray<PublicModule>> => {
  const { metafile } = await build({
    ...options(dist),
    ...{ entryPoints: paths.map((path) => join(dist, `${path}.js`)), outdir: dist, outbase: dist, absWorkingDir: dist },
    ...{ write: false, metafile: true }
  })
  return paths.map((path) => {
    const { exports: names = [], imports = [] } = metafile?.outputs[`${path}.js`] ?? {}
    const loaded = imports.filter(({ kind }) => kind !== "dynamic-import").map((each) => each.path)
    const needsPeer = peers.some((peer) => loaded.some((name) => name === peer || name.startsWith(`${peer}/`)))
    return { path, names, needsPeer }
  })
}

/** Writes the build of a package whose `dist` is compiled. */
export const writeNodeBuild = async (folder: string): Promise<void> => {
  const dist = join(folder, "dist")
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const modules = await publicModules(dist, pathsOf(manifest, dist), optionalPeers(manifest))
  const together = modules.filter(({ needsPeer }) => !needsPeer)
  const apart = modules.filter(({ needsPeer }) => needsPeer)
  const target = join(folder, nodeFolder)
  rmSync(target, { recursive: true, force: true })
  const all = together.map((module) => {
    const names = module.names.map((name) => `${name} as ${nameIn(module, name)}`).join(", ")
    return `export { ${names} } from "./${module.path}.js"\n`
  })
  const first = existsSync(join(dist, nodeVersion)) ? [`import "./${nodeVersion}"\n`] : []
  await build({
    ...options(dist),
    plugins: [keepsNodeVersion(dist), oneFile(dist, [...first, ...all].join(""))],
    entryPoints: { all: "all", ...Object.fromEntries(apart.map(({ path }) => [path, join(dist, `${path}.js`)])) },
    ...{ outdir: target, chunkNames: "part-[hash]" },
    ...{ splitting: true, sourcemap: true, sourcesContent: false }
  })
  for (const module of together) {
    const file = join(target, `${module.path}.js`)
    const names = module.names.map((name) => `${nameIn(module, name)} as ${name}`).join(", ")
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `export { ${names} } from "${"../".repeat(module.path.split("/").length - 1) || "./"}all.js"\n`)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeNodeBuild(process.cwd())
