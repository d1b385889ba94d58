/** A published package as its tarball holds it. */
import { execFileSync } from "node:child_process"
import { globSync, mkdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"

export interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly exports: Readonly<Record<string, unknown>>
  readonly files?: ReadonlyArray<string>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

export interface Packed {
  readonly manifest: Manifest
  /** The package's folder in the workspace. */
  readonly source: string
  readonly tarball: string
  /** The unpacked tarball. */
  readonly folder: string
}

export const readManifest = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))

/** Runs a command, and gives what it printed. */
export const run = (command: string, args: ReadonlyArray<string>, cwd: string): string =>
  execFileSync(command, [...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })

/** Packs the package of a source folder into `tarballs`, and unpacks the tarball into `work`. */
export const pack = (source: string, tarballs: string, work: string): Packed => {
  const { name } = readManifest(source)
  const folder = join(work, basename(source))
  const tarball = join(tarballs, `${basename(source)}.tgz`)
  run("pnpm", ["pack", "--out", tarball], source)
  mkdirSync(folder)
  run("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"], work)
  console.log(`packed ${name}`)
  return { manifest: readManifest(folder), source, tarball, folder }
}

/** The modules that a source folder compiles to, without extension. */
export const modules = (folder: string): ReadonlyArray<string> =>
  globSync("**/*.ts", { cwd: folder })
    .filter((file) => !file.endsWith(".d.ts"))
    .map((file) => file.slice(0, -".ts".length))
    .sort()

/** A file that a package gives out as it is. */
export const isData = (path: string): boolean => path.endsWith(".json")

/** The entry points of a package that are modules, as its exports map writes them: `.`, `./Binding`. */
export const entryPoints = ({ manifest, source }: Pick<Packed, "manifest" | "source">): ReadonlyArray<string> =>
  Object.keys(manifest.exports).flatMap((path) => {
    if (manifest.exports[path] === null || isData(path)) return []
    if (!path.includes("*")) return [path]
    const [folder = "", rest] = path.slice("./".length).split("*")
    const names = modules(join(source, "src", folder)).filter((name) => !name.includes("/") && name !== "index")
    return names.map((name) => `./${folder}${name}${rest}`)
  })
