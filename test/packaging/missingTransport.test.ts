/** A project without `@eventbus/kafka`: it runs and bundles on kafkajs, and the name of the other transport says what to install. */
import { execFile } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { build } from "esbuild"
import { afterAll, beforeAll, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const project = mkdtempSync(join(tmpdir(), "eventbus-without-kafka-"))

const program = `
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ClusterTransport from "./ClusterTransport.ts"

const built = Effect.scoped(Layer.build(ClusterTransport.layer({ brokers: ["127.0.0.1:9"], transport: process.argv[2] as never })))
console.log(await Effect.runPromise(Effect.match(built, { onFailure: ({ message }) => message, onSuccess: () => "built" })))
`

const installed = {
  "@eventbus/core": "packages/core",
  "@eventbus/kafkajs": "packages/kafkajs",
  effect: "node_modules/effect"
}

beforeAll(() => {
  for (const [name, folder] of Object.entries(installed)) {
    const link = join(project, "node_modules", name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(join(root, folder), link)
  }
  copyFileSync(join(root, "packages/config/src/ClusterTransport.ts"), join(project, "ClusterTransport.ts"))
  writeFileSync(join(project, "package.json"), '{ "type": "module" }')
  writeFileSync(join(project, "main.ts"), program)
})

afterAll(() => rmSync(project, { recursive: true, force: true }))

const run = async (file: string, transport: string): Promise<string> => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", join(project, file), transport])
  return stdout.trim()
}

const missing =
  'transport: found "kafka", whose package is not installed, allowed is the transport of an installed package; npm install @eventbus/kafka adds this one'

const words: ReadonlyArray<readonly [transport: string, words: string]> = [
  ["kafkajs", "built"],
  ["kafka", missing],
  ["librdkafka", 'transport: found \'librdkafka\', allowed is "kafkajs" or "kafka"']
]

it.each(words)(
  "RCH-02 CLN-15 %s in a project without @eventbus/kafka",
  async (transport, expected) => {
    expect(await run("main.ts", transport)).toContain(expected)
  },
  60_000
)

it("RCH-02 CLN-15 the bundle of such a project builds, loads kafkajs in a part of its own, and says the same", async () => {
  const { warnings, metafile } = await build({
    ...{ absWorkingDir: project, entryPoints: ["main.ts"], outdir: "dist", metafile: true },
    ...{ bundle: true, splitting: true, platform: "node", format: "esm", outExtension: { ".js": ".mjs" } },
    ...{ loader: { ".node": "copy" }, logLevel: "silent" },
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url)'
    }
  })
  expect(warnings).toEqual([])
  const parts = Object.entries(metafile.outputs)
  const withKafkaJs = parts.filter(([, { inputs }]) =>
    Object.keys(inputs).some((path) => path.includes("/kafkajs/src/"))
  )
  const imported = metafile.outputs["dist/main.mjs"]!.imports
  const atOnce = imported.filter(({ kind }) => kind !== "dynamic-import").map(({ path }) => path)
  expect(withKafkaJs).not.toEqual([])
  for (const [path] of withKafkaJs) expect(["dist/main.mjs", ...atOnce]).not.toContain(path)
  for (const [transport, expected] of words) expect(await run("dist/main.mjs", transport)).toContain(expected)
}, 120_000)
