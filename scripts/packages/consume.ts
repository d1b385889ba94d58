/** A project outside the workspace that installs all tarballs, type-checks every public module and runs a program. */
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { timeCompiler } from "./compileTime.ts"
import { entryPoints, type Packed, run } from "./packed.ts"

/** The public modules of a package, as a user imports them. */
const publicModules = (packed: Packed): ReadonlyArray<string> =>
  entryPoints(packed).map((path) => `${packed.manifest.name}${path.slice(".".length)}`)

/** Peers of the packages, in the versions that the workspace itself is tested with. */
const peers = (packages: ReadonlyArray<Packed>, root: string): Record<string, string> => {
  const pinned = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).devDependencies
  const asked = packages.flatMap(({ manifest: { peerDependencies = {}, devDependencies = {} } }) =>
    Object.keys(peerDependencies).map((name) => [name, pinned[name] ?? devDependencies[name] ?? "*"])
  )
  return Object.fromEntries([...asked, ...["typescript", "@types/node"].map((name) => [name, pinned[name]])])
}

/** Throws where the project cannot be installed, does not compile, or its program fails. */
export const consume = (packages: ReadonlyArray<Packed>, root: string, work: string): void => {
  const consumer = join(work, "consumer")
  mkdirSync(consumer)
  const write = (name: string, text: string) => writeFileSync(join(consumer, name), text)
  const tarballs = Object.fromEntries(packages.map(({ manifest, tarball }) => [manifest.name, `file:${tarball}`]))
  const dependencies = { ...peers(packages, root), ...tarballs }
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
  timeCompiler(consumer, join(root, "test/packaging/consumer/small.ts"), root)
  run(process.execPath, ["indexes.ts"], consumer)
  process.stdout.write(run(process.execPath, ["program.ts"], consumer))
  process.stdout.write(run(join(consumer, "node_modules/.bin/eventbus"), ["--version"], consumer))
}
