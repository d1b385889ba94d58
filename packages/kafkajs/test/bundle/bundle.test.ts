/** Bundled programs hold one copy of kafkajs, with the repairs, and connect. The options of esbuild are those of the guide. */
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { RealKafka } from "@eventbus/kafka-runner"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect, Redacted } from "effect"
import { type BuildOptions, build } from "esbuild"

const requireForDependencies = `import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url)`

const formats: Record<"esm" | "cjs", BuildOptions> = {
  esm: { format: "esm", outExtension: { ".js": ".mjs" }, banner: { js: requireForDependencies } },
  cjs: { format: "cjs", outExtension: { ".js": ".cjs" } }
}

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "eventbus-bundle-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true }))
)

/** Bundles the program into a folder without dependencies. Returns the kafkajs files that it holds. */
const bundle = (folder: string, format: "esm" | "cjs") =>
  Effect.promise(async () => {
    const { metafile } = await build({
      ...formats[format],
      entryPoints: [fileURLToPath(new URL("./program.ts", import.meta.url))],
      outdir: folder,
      bundle: true,
      splitting: format === "esm",
      minifyWhitespace: true,
      minifySyntax: true,
      platform: "node",
      loader: { ".node": "copy" },
      metafile: true,
      logLevel: "silent"
    })
    return Object.keys(metafile.inputs).filter((path) => /node_modules\/kafkajs\//.test(path))
  })

const run = (file: string, env: Record<string, string>) =>
  Effect.promise(() => promisify(execFile)(process.execPath, [file], { env: { PATH: "", ...env }, timeout: 60_000 }))

const produce = (options: KafkaJs.Options, topic: string, value: string) =>
  Effect.gen(function* () {
    const { admin, producer } = yield* Broker.Broker
    yield* (yield* admin).createTopics([{ topic, partitions: 1 }])
    yield* (yield* producer()).send({ topic, key: null, value: Buffer.from(value) })
  }).pipe(Effect.scoped, Effect.provide(KafkaJs.layer(options)))

KafkaSuite.own("a bundled program", { security: "sasl_ssl" }, (it) => {
  it.effect.each(["esm", "cjs"] as const)(
    "RCH-01 connects with SASL and TLS and consumes a record, as %s",
    (format) =>
      Effect.gen(function* () {
        const { bootstrap, ca = "", users } = yield* RealKafka.RealKafka
        const { username, password } = users.app
        const sasl = { mechanism: "scram-sha-512", username, password: Redacted.make(password) } as const
        const topic = `bundled-${format}`
        yield* produce({ brokers: bootstrap, ssl: { ca }, sasl }, topic, format)

        const folder = yield* temporaryFolder
        const kafkajsFiles = yield* bundle(folder, format)
        assert.strictEqual(kafkajsFiles.filter((path) => path.endsWith("network/connection.js")).length, 1)

        const file = join(folder, format === "esm" ? "program.mjs" : "program.cjs")
        const { stdout } = yield* run(file, {
          BROKER: bootstrap[0]!,
          CA: ca,
          USERNAME: username,
          PASSWORD: password,
          TOPIC: topic
        })
        assert.include(stdout, `handled: ${format}`)
      }).pipe(Effect.scoped),
    120_000
  )
})
