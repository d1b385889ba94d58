/** The registry that npm is configured for, or the one that the command names. */
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { command, Refusal } from "./command.ts"

export interface Tarball {
  readonly name: string
  readonly version: string
  readonly path: string
  /** Packages that it depends on, peers included. */
  readonly needs: ReadonlyArray<string>
}

/** The tarballs of a folder, each behind those that it depends on, so that whatever is published can be installed. */
export const readTarballs = (folder: string): ReadonlyArray<Tarball> => {
  const waiting = globSync("*.tgz", { cwd: folder })
    .sort()
    .map((file) => readTarball(join(folder, file)))
  const sorted: Array<Tarball> = []
  while (waiting.length > 0) {
    const isFree = ({ needs }: Tarball) => !waiting.some(({ name }) => needs.includes(name))
    const next = waiting.findIndex(isFree)
    if (next === -1) throw new Refusal(`Packages depend on each other: ${waiting.map(({ name }) => name).join(", ")}`)
    sorted.push(...waiting.splice(next, 1))
  }
  return sorted
}

const readTarball = (path: string): Tarball => {
  const manifest = JSON.parse(command("tar", ["-xzOf", path, "package/package.json"], "."))
  const needs = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })
  return { name: manifest.name, version: manifest.version, path, needs }
}

const options = (registry: string | undefined): ReadonlyArray<string> =>
  registry === undefined ? [] : [`--registry=${registry}`]

/** Whether the registry has this very tarball. Refuses where it has another one of the same name and version, and where it gives no answer. */
export const isPublished = async ({ name, version, path }: Tarball, registry: string | undefined): Promise<boolean> => {
  const found = await integrityOf(`${name}@${version}`, registry)
  if (found === undefined) return false
  const own = `sha512-${createHash("sha512").update(readFileSync(path)).digest("base64")}`
  if (found === own) return true
  throw new Refusal(
    `${name}@${version} exists with other content, so this version cannot be published. To finish a release that was cut off, release from the commit that it began with.`
  )
}

const integrityOf = async (spec: string, registry: string | undefined): Promise<string | undefined> => {
  // Nothing is uploaded yet: a person who runs the command again waits less than for npm's own retries.
  const flags = ["--json", "--prefer-online", "--fetch-retries=0", ...options(registry)]
  const args = ["view", spec, "dist.integrity", ...flags]
  try {
    const answer = (await promisify(execFile)("npm", args)).stdout.trim()
    // A package that exists without this version has an empty answer.
    return answer === "" ? undefined : JSON.parse(answer)
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { readonly stdout?: string; readonly stderr?: string }
    if (`${stdout}${stderr}`.includes("E404")) return undefined
    throw new Refusal(`The registry does not say whether ${spec} exists:\n${`${stdout}${stderr}`.trim()}`)
  }
}

/** Publishes a tarball. A dry run says what would be published, and uploads nothing. */
export const publish = ({ path }: Tarball, registry: string | undefined, isDryRun: boolean): void => {
  const args = ["publish", path, "--access=public", ...options(registry), ...(isDryRun ? ["--dry-run"] : [])]
  command("npm", args, ".")
}
