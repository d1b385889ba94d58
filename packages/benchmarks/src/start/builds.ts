/** Builds a program as its users do: its packages as JavaScript modules in `node_modules`, or everything in one file by esbuild. */
import { execFile } from "node:child_process"
import { mkdir, mkdtemp, readdir, readFile, realpath, symlink, writeFile } from "node:fs/promises"
import { stripTypeScriptTypes } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { build } from "esbuild"

const packages = fileURLToPath(new URL("../../../", import.meta.url))
/** The last step of packing: Node loads what it writes, and bundlers the single modules. */
const nodeBuild = join(packages, "../scripts/packages/nodeBuild.ts")

/** The packages of this workspace that the programs import, and those that come from a registry, each with the package whose dependency it is. */
const own = ["core", "kafka-client", "kafkajs", "kafka"]
const others = {
  "@effect/platform-node": "benchmarks",
  "@node-rs/crc32": "kafka-client",
  effect: "kafkajs",
  kafkajs: "kafkajs"
}

/** The modules of a folder as a published package has them. The types become spaces, so that lines and columns stay. */
const compiled = async (from: string, to: string): Promise<void> => {
  for (const file of await readdir(from, { recursive: true })) {
    if (!file.endsWith(".ts") || file.endsWith(".d.ts")) continue
    const code = stripTypeScriptTypes(await readFile(join(from, file), "utf8"))
    const target = join(to, file.replace(/\.ts$/, ".js"))
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, code.replace(/((?:from|import\(?) ?"\.[^"\n]*)\.ts"/g, '$1.js"'))
  }
}

/** A project with the programs, in a folder of its own, as a package manager installs it. */
export const project = async (): Promise<string> => {
  const cache = join(packages, "../node_modules/.cache")
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, "bench-start-"))
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  for (const name of own) {
    const home = join(folder, "node_modules/@eventbus", name)
    await compiled(join(packages, name, "src"), join(home, "dist"))
    const manifest = JSON.parse(await readFile(join(packages, name, "package.json"), "utf8"))
    await writeFile(
      join(home, "package.json"),
      JSON.stringify({ ...manifest, exports: manifest.publishConfig.exports })
    )
    await promisify(execFile)(process.execPath, [nodeBuild], { cwd: home })
  }
  for (const [name, owner] of Object.entries(others)) {
    const path = join(folder, "node_modules", name)
    await mkdir(dirname(path), { recursive: true })
    await symlink(await realpath(join(packages, owner, "node_modules", name)), path)
  }
  await compiled(join(packages, "benchmarks/src/start"), folder)
  return folder
}

/** A folder with everything that the program imports, by the command of the guide. Returns the path of the program. */
export const bundled = async (folder: string, program: string): Promise<string> => {
  const outdir = join(folder, "bundle", program)
  const banner = `import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url)`
  await build({
    ...{ entryPoints: [join(folder, `${program}.js`)], outdir, outExtension: { ".js": ".mjs" } },
    ...{ bundle: true, splitting: true, minifyWhitespace: true, minifySyntax: true, platform: "node", format: "esm" },
    ...{ banner: { js: banner }, loader: { ".node": "copy" }, logLevel: "silent" }
  })
  return join(outdir, `${program}.mjs`)
}
