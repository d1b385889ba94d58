/** The weight of a user's `npm install` without development dependencies: how many packages, and how many megabytes. */
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Packed, run } from "./packed.ts"

/** The packages that somebody starts with, and the bounds of what they may bring. */
export interface Door {
  readonly name: string
  /** Packages of the workspace. */
  readonly packages: ReadonlyArray<string>
  /** Packages of others that the user installs beside them. */
  readonly beside: ReadonlyArray<string>
  readonly most: Weight
}

export interface Weight {
  readonly packages: number
  /** Millions of bytes of all files. */
  readonly megabytes: number
}

/** The README names these figures. A new dependency that exceeds them is a decision: raise the bound, and give its reason in `docs/decisions/dependencies.md`. */
export const doors: ReadonlyArray<Door> = [
  {
    name: "core and kafkajs",
    packages: ["@eventbus/core", "@eventbus/kafka-client", "@eventbus/kafkajs"],
    beside: ["effect"],
    most: { packages: 7, megabytes: 68 }
  },
  {
    name: "node",
    packages: ["@eventbus/core", "@eventbus/kafka-client", "@eventbus/kafkajs", "@eventbus/config", "@eventbus/node"],
    beside: ["effect"],
    most: { packages: 11, megabytes: 72 }
  }
]

/** Packages in a `node_modules`, each with the bytes of its own files. */
const installedPackages = (project: string): ReadonlyMap<string, number> => {
  const sizes = new Map<string, number>()
  for (const file of globSync("node_modules/**/*", { cwd: project })) {
    const stats = statSync(join(project, file), { throwIfNoEntry: false })
    const name = /^.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)
    if (stats?.isFile() !== true || name === null || name[1] === ".bin") continue
    sizes.set(name[0], (sizes.get(name[0]) ?? 0) + stats.size)
  }
  return sizes
}

/** Installs the packages of a door into an empty folder of `work`, and gives what they bring. Prints it, with the heaviest package. */
export const weigh = (door: Door, packages: ReadonlyArray<Packed>, root: string, work: string): Weight => {
  const project = join(work, `weight-${door.name.replaceAll(" ", "-")}`)
  mkdirSync(project)
  const pinned = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).devDependencies
  const tarballs = packages
    .filter(({ manifest }) => door.packages.includes(manifest.name))
    .map(({ manifest, tarball }) => [manifest.name, `file:${tarball}`])
  const dependencies = Object.fromEntries([...door.beside.map((name) => [name, pinned[name]]), ...tarballs])
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "weight", private: true, dependencies }))
  const install = ["install", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
  run("npm", install, project)
  const sizes = installedPackages(project)
  const megabytes = (bytes: number) => Math.round(bytes / 1e6)
  const weight = {
    packages: sizes.size,
    megabytes: megabytes([...sizes.values()].reduce((sum, size) => sum + size, 0))
  }
  const [heaviest, most] = [...sizes].reduce((one, other) => (other[1] > one[1] ? other : one), ["", 0] as const)
  const ofWhich = `${heaviest.slice("node_modules/".length, -1)} ${megabytes(most)} MB`
  console.log(`install of ${door.name}: ${weight.packages} packages, ${weight.megabytes} MB, of which ${ofWhich}`)
  return weight
}

/** The bounds that an installation exceeds. */
export const weightFaults = ({ name, most }: Door, weight: Weight): ReadonlyArray<string> =>
  (["packages", "megabytes"] as const)
    .filter((unit) => weight[unit] > most[unit])
    .map((unit) => `install of ${name}: ${weight[unit]} ${unit}, allowed are ${most[unit]}`)
