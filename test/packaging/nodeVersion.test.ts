import { execFile } from "node:child_process"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

// Without the `node` package's build script pnpm runs everything on the machine's own Node, and says so only in a warning.
it("tests run on the Node that the workspace pins", () => {
  expect(process.version).toMatch(/^v24\./)
})

/** The output of a process that imports the package on a Node that calls itself by this version. */
const importedOn = async (version: string, name: string): Promise<string> => {
  const disguise = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`
  const args = ["--import", `data:text/javascript,${encodeURIComponent(disguise)}`]
  const program = `await import("${name}"); console.log("imported")`
  return promisify(execFile)(process.execPath, [...args, "--input-type=module", "-e", program], { cwd: root }).then(
    ({ stdout }) => stdout,
    ({ stderr }: { stderr: string }) => stderr
  )
}

it.each(["@eventbus/core", "@eventbus/core/Binding", "@eventbus/kafkajs", "@eventbus/node"])(
  "RCH-03 an import on a Node that is too old says in one sentence which one is needed: %s",
  async (name) => {
    const sentence = "Error: The Event Bus Connector needs Node 22.19 or later, and this is Node 20.20.2."
    expect(await importedOn("20.20.2", name)).toContain(`${sentence}\n`)
  }
)

it("RCH-03 the first Node that is new enough passes, and it is the one of every package", async () => {
  expect(await importedOn("22.18.9", "@eventbus/core")).toContain("this is Node 22.18.9.")
  expect(await importedOn("22.19.0", "@eventbus/core")).toBe("imported\n")
  for (const manifest of globSync("packages/*/package.json", { cwd: root })) {
    const { engines, private: isPrivate } = JSON.parse(readFileSync(join(root, manifest), "utf8"))
    if (isPrivate !== true) expect(engines, manifest).toEqual({ node: ">=22.19" })
  }
})
