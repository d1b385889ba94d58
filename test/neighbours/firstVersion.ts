/**
 * The first version of the packages (0.1.0, as landed) as users installed it: its tarballs are in `v1`. They are unpacked into a folder of their own, beside a copy of the
 * program, with the dependencies of this workspace. No network is needed.
 */
import { execFileSync } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

const root = fileURLToPath(new URL("../..", import.meta.url))
const packages = ["core", "kafkajs", "outbox", "config", "testkit"]
/** The packages that have what its packages depend on today: the checksums of records have moved. */
const homes = [...packages, "kafka-client"]

/** Links every dependency of a package that is no package of the workspace. */
const linkAll = (from: string, to: string): void => {
  if (!existsSync(from)) return
  for (const name of readdirSync(from)) {
    if (name.startsWith(".") || name === "@eventbus") continue
    if (name.startsWith("@")) linkAll(join(from, name), join(to, name))
    else if (!existsSync(join(to, name))) {
      mkdirSync(to, { recursive: true })
      symlinkSync(join(from, name), join(to, name))
    }
  }
}

const install = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "eventbus-v1-"))
  const modules = join(folder, "node_modules")
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
  for (const name of packages) {
    const target = join(modules, "@eventbus", name)
    mkdirSync(target, { recursive: true })
    const tarball = fileURLToPath(new URL(`v1/${name}.tgz`, import.meta.url))
    execFileSync("tar", ["-xzf", tarball, "-C", target, "--strip-components=1"])
  }
  for (const home of homes) linkAll(join(root, "packages", home, "node_modules"), modules)
  linkAll(join(root, "node_modules"), modules)
  copyFileSync(fileURLToPath(new URL("program.ts", import.meta.url)), join(folder, "program.ts"))
  return folder
}

/** The path of the program that runs on the first version; gone with the Scope. */
export const firstVersion = Effect.map(
  Effect.acquireRelease(Effect.sync(install), (folder) =>
    Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "program.ts")
)

/** The path of the program that runs on this version. */
export const thisVersion = join(dirname(fileURLToPath(import.meta.url)), "program.ts")
