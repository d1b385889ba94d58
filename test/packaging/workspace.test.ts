import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const readJson = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"))

const packages = globSync("packages/*/package.json", { cwd: root }).map((path) => ({
  folder: dirname(path),
  manifest: readJson(path)
}))
const publishable = packages.filter(({ manifest }) => manifest.private !== true)

const sourcesOf = (folder: string) =>
  globSync(`${folder}/**/*.ts`, { cwd: root }).map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))

/** The entry of the published package for an export of the sources. Node loads one file of a package that has a build for it; bundlers load single modules. */
const published = (target: string | null, hasNodeBuild: boolean) => {
  if (target === null || !target.endsWith(".ts")) return target
  const compiled = target.replace("./src/", "./dist/").replace(/\.ts$/, "")
  const forNode = compiled.replace("./dist/", "./dist/internal/node/")
  return hasNodeBuild
    ? { types: `${compiled}.d.ts`, module: `${compiled}.js`, default: `${forNode}.js` }
    : { types: `${compiled}.d.ts`, default: `${compiled}.js` }
}

/** Every start of a program loads these packages. */
const withNodeBuild = ["config", "core", "kafka", "kafka-client", "kafkajs", "node"].map((name) => `packages/${name}`)

describe("the workspace", () => {
  it.each([
    ...["package.json", "tsconfig.json", "pnpm-workspace.yaml", "README.md", "LICENSE"],
    ...["packages", "test", "docs"]
  ])("CARD-02: its root holds %s", (name) => {
    expect(existsSync(join(root, name))).toBe(true)
  })

  it.each(packages)("type-checks $folder with all other packages", ({ folder }) => {
    const { references } = readJson("tsconfig.json")
    expect(references.map((reference: { readonly path: string }) => reference.path)).toContain(folder)
  })

  it.each(packages)("pins every dependency of $folder exactly", ({ manifest }) => {
    const loose = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }).filter(
      ([, version]) => !/^(\d+\.\d+\.\d+|workspace:[*^])/.test(String(version))
    )
    expect(loose).toEqual([])
  })

  it.each([
    ["effect", "core", "peerDependencies"],
    ["@effect/opentelemetry", "observability", "dependencies"],
    ["kafkajs", "kafkajs", "dependencies"],
    ["@effect/vitest", "testkit", "devDependencies"]
  ])("CARD-01: declares %s in packages/%s", (name, folder, kind) => {
    expect(readJson(`packages/${folder}/package.json`)[kind]).toHaveProperty([name])
  })

  it("CARD-01: imports former Effect 3 packages from effect, and the README says from where", () => {
    const homes = [
      ["effect", "effect", /from "effect[/"]/],
      ["@effect/platform", "effect/http", /\bHttpClient\b[^;]* from "effect\/http(\/HttpClient)?"/],
      ["@effect/platform", "effect/http-api", /\bHttpApi\b[^;]* from "effect\/http-api(\/HttpApi)?"/],
      ["@effect/platform", "FileSystem", /\bFileSystem\b[^;]* from "effect(\/FileSystem)?"/],
      ["@effect/platform", "Path", /\bPath\b[^;]* from "effect(\/Path)?"/],
      ["@effect/schema", "Schema", /\bSchema\b[^;]* from "effect(\/Schema)?"/],
      ["@effect/vitest", "@effect/vitest", /from "@effect\/vitest"/],
      ["kafkajs", "kafkajs", /from "kafkajs"/],
      ["@effect/opentelemetry", "@effect/opentelemetry", /from "@effect\/opentelemetry/]
    ] as const
    const readme = readFileSync(join(root, "README.md"), "utf8").split("\n")
    const sources = sourcesOf("packages/*/src").map(({ text }) => text)
    for (const [card, home, imported] of homes) {
      const row = readme.find((line) => line.startsWith(`| \`${card}\` |`))
      expect(row, `README row of ${card}`).toContain(home)
      expect(
        sources.some((text) => imported.test(text)),
        `an import of ${home}`
      ).toBe(true)
    }
    const old = /from "@effect\/(platform|schema)["/]/
    expect(sources.filter((text) => old.test(text))).toEqual([])
    for (const { manifest } of packages) {
      const declared = Object.keys({
        ...manifest.dependencies,
        ...manifest.devDependencies,
        ...manifest.peerDependencies
      })
      expect(declared.filter((name) => name === "@effect/platform" || name === "@effect/schema")).toEqual([])
    }
  })

  it("NFR-04: no class of the sources is the base of another; only services, errors and schemas are extended", () => {
    const extended = sourcesOf("packages/*/src").flatMap(({ path, text }) =>
      Array.from(
        text.matchAll(/^\s*(?:export )?(?:abstract )?class (\w+)(?:<[^{]*>)? extends ([\w.]+)/gm),
        ([, name, base]) => ({
          path,
          name,
          base
        })
      )
    )
    // A transport of NestJS is a `Server`, and a context of it a `KafkaContext`: controllers ask for that class.
    const ofThePlatform =
      /^(Server|KafkaContext|Context\.(Service|Reference)|Schema\.(TaggedError|Class|TaggedClass)|Data\.\w+|Error|HttpApi\w*\.\w+)$/
    expect(extended.length).toBeGreaterThan(20)
    expect(extended.filter(({ base }) => !ofThePlatform.test(base!))).toEqual([])
    expect(sourcesOf("packages/*/src").filter(({ text }) => /^\s*(export )?abstract class /m.test(text))).toEqual([])
  })

  it("NFR-04: one concern per module: no module is long, and each begins with its purpose", () => {
    const modules = sourcesOf(
      "packages/{core,config,kafkajs,outbox,observability,rabbitmq,redis,schema-registry,avro,json-schema,protobuf,admin,node}/src"
    )
    expect(modules.length).toBeGreaterThan(200)
    expect(modules.filter(({ text }) => text.split("\n").length > 350).map(({ path }) => path)).toEqual([])
    const silent = modules.filter(({ path, text }) => !path.endsWith("/index.ts") && !/^\/\*\*/.test(text))
    expect(silent.map(({ path }) => path)).toEqual([])
  })

  it.each(publishable)("publishes the exports of $folder, and no internals", ({ folder, manifest }) => {
    const { exports, publishConfig } = manifest
    const paths = Object.keys(exports)
    const hasNodeBuild = withNodeBuild.includes(folder)
    expect(manifest.scripts.prepack.includes("nodeBuild.ts")).toBe(hasNodeBuild)
    expect(publishConfig.exports).toEqual(
      Object.fromEntries(paths.map((path) => [path, published(exports[path], hasNodeBuild)]))
    )
    if (paths.includes("./*")) expect(exports["./internal/*"]).toBe(null)
  })

  it.each(publishable)("the root can resolve $manifest.name", ({ manifest }) => {
    expect(readJson("package.json").devDependencies).toHaveProperty(manifest.name)
  })

  it("CARD-12: what is published waits, and tells the time, by Effect's clock alone", () => {
    const ofThePlatform =
      /\b(setTimeout|setInterval)\(|\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\(|\bhrtime\b|timers\/promises|AbortSignal\.timeout|Atomics\.wait/g
    // The console runs in a browser.
    const uses = publishable.flatMap(({ folder }) =>
      sourcesOf(`${folder}/src`)
        .filter(({ path }) => path !== "packages/admin/src/internal/console/bundle.ts")
        .flatMap(({ path, text }) =>
          Array.from(text.matchAll(ofThePlatform), ([use]) => `${path.slice("packages/".length)}: ${use}`)
        )
    )
    // Sockets are of the real world: the adapter sleeps by Effect's clock too, but compares deadlines of the wire, among them the session timeout since a member's
    // last heartbeat, measures how long an address has been silent, and stamps records with the time that a broker holds against its own. kafkajs has a timer of its own,
    // and so have connections: their time-outs, throttling, and the next authentication.
    // Node.js ends the connection of a caller that reads nothing.
    expect(uses.sort()).toEqual([
      "admin/src/internal/stuckCallers.ts: setTimeout(",
      ...Array.from({ length: 2 }, () => "kafka-client/src/internal/connection/brokerErrors.ts: performance.now("),
      ...Array.from({ length: 2 }, () => "kafka-client/src/internal/connection/cluster.ts: performance.now("),
      ...Array.from({ length: 2 }, () => "kafka-client/src/internal/connection/nodeConnections.ts: performance.now("),
      ...Array.from({ length: 4 }, () => "kafka-client/src/internal/connection/silentAddresses.ts: performance.now("),
      ...Array.from({ length: 3 }, () => "kafka-client/src/internal/fetch/fetcher.ts: performance.now("),
      ...Array.from({ length: 4 }, () => "kafka-client/src/internal/group/classicMembership.ts: performance.now("),
      ...Array.from({ length: 5 }, () => "kafka-client/src/internal/group/consumerMembership.ts: performance.now("),
      "kafka-client/src/internal/publish/pendingRecords.ts: Date.now",
      "kafka-client/src/internal/publish/sendBatches.ts: Date.now",
      "kafka-client/src/internal/publish/sender.ts: Date.now",
      ...Array.from({ length: 2 }, () => "kafka-client/src/internal/session/consumerSession.ts: performance.now("),
      ...Array.from({ length: 3 }, () => "kafka/src/internal/authentication.ts: performance.now("),
      "kafka/src/internal/authentication.ts: setTimeout(",
      ...Array.from({ length: 8 }, () => "kafka/src/internal/connection.ts: performance.now("),
      ...Array.from({ length: 2 }, () => "kafka/src/internal/connection.ts: setTimeout("),
      "kafka/src/internal/openConnection.ts: setTimeout(",
      "kafkajs/src/internal/kafkajsFailure.ts: Date.now",
      "kafkajs/src/internal/kafkajsPatches.ts: Date.now",
      "kafkajs/src/internal/kafkajsPatches.ts: setTimeout("
    ])
  })
})
