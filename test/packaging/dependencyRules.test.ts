import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** A work tree that breaks each rule once, beside imports that are allowed. */
const planted: Record<string, string> = {
  "node_modules/effect/index.js": "export const Effect = {}",
  "node_modules/kafkajs/index.js": "export const Kafka = {}",
  "packages/core/src/index.ts": `import { Effect } from "effect"\nexport const core = Effect`,
  "packages/core/src/internal/secret.ts": "export const secret = 1",
  "packages/kafkajs/src/allowed.ts": `import { Kafka } from "kafkajs"\nimport { core } from "../../core/src/index.ts"\nexport const both = [Kafka, core]`,

  "packages/core/src/typeCycleA.ts": `import type { B } from "./typeCycleB.ts"\nexport interface A { readonly b: B }`,
  "packages/core/src/typeCycleB.ts": `import type { A } from "./typeCycleA.ts"\nexport interface B { readonly a: A }`,
  "packages/core/src/upward.ts": `import { both } from "../../kafkajs/src/allowed.ts"\nexport const upward = both`,
  "packages/core/src/internal/base/low.ts": "export const low = 1",
  "packages/core/src/internal/lifecycle/allowed.ts": `export { low } from "../base/low.ts"`,
  "packages/core/src/internal/base/upward.ts": `export { low } from "../lifecycle/allowed.ts"`,
  "packages/core/src/internal/record/upward.ts": `import type { Lane } from "../delivery/lane.ts"\nexport type Copy = Lane`,
  "packages/core/src/internal/delivery/lane.ts": "export type Lane = number",
  "packages/core/src/internal/attic/misplaced.ts": `export { low } from "../base/low.ts"`,
  "packages/kafka-client/src/internal/wire/upward.ts": `export { session } from "../session/session.ts"`,
  "packages/kafka-client/src/internal/session/session.ts": "export const session = 1",
  "packages/core/src/client.ts": `import { Kafka } from "kafkajs"\nexport const client = Kafka`,
  "packages/core/src/platform.ts": `import { hostname } from "node:os"\nexport const platform = hostname`,
  "packages/testkit/src/client.ts": `export { Kafka } from "kafkajs"`,
  "packages/testkit/test/client.test.ts": `import { Kafka } from "kafkajs"\nexport const client = Kafka`,
  "packages/testkit/src/intruder.ts": `export { secret } from "../../core/src/internal/secret.ts"`,
  "packages/examples/src/index.ts": "export const example = 1",
  "test/example.test.ts": `export { example } from "../packages/examples/src/index.ts"`,
  "packages/outbox/src/tested.ts": `export { helper } from "../test/helper.ts"`,
  "packages/outbox/test/helper.ts": "export const helper = 1",
  "packages/novelty/src/index.ts": `export { Effect } from "effect"`,
  "packages/outbox/src/nowhere.ts": `export { nothing } from "./nothing.ts"`
}

interface Violation {
  readonly from: string
  readonly rule: { readonly name: string }
}

let tree: string
let violations: ReadonlyArray<Violation>

beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), "dependency-rules-"))
  for (const [file, text] of Object.entries(planted)) {
    mkdirSync(dirname(join(tree, file)), { recursive: true })
    writeFileSync(join(tree, file), text)
  }
  const cruiser = join(root, "node_modules/dependency-cruiser/bin/dependency-cruiser.mjs")
  const rules = join(root, "scripts/dependencyRules.mjs")
  const run = spawnSync(process.execPath, [cruiser, "--config", rules, "-T", "json", "packages", "test"], {
    cwd: tree,
    encoding: "utf8"
  })
  violations = JSON.parse(run.stdout).summary.violations
})

afterAll(() => rmSync(tree, { recursive: true, force: true }))

describe("the dependency rules", () => {
  it.each([
    ["cycle", "packages/core/src/typeCycleA.ts"],
    ["core-imports-upwards", "packages/core/src/upward.ts"],
    ["core-room-base-imports-upwards", "packages/core/src/internal/base/upward.ts"],
    ["core-room-record-imports-upwards", "packages/core/src/internal/record/upward.ts"],
    ["kafka-client-room-wire-imports-upwards", "packages/kafka-client/src/internal/wire/upward.ts"],
    ["room-without-a-place", "packages/core/src/internal/attic/misplaced.ts"],
    ["core-imports-more-than-effect", "packages/core/src/client.ts"],
    ["core-imports-more-than-effect", "packages/core/src/platform.ts"],
    ["kafkajs-outside-its-adapter", "packages/testkit/src/client.ts"],
    ["kafkajs-outside-its-adapter", "packages/testkit/test/client.test.ts"],
    ["internal-of-another-package", "packages/testkit/src/intruder.ts"],
    ["program-imported", "test/example.test.ts"],
    ["source-imports-test", "packages/outbox/src/tested.ts"],
    ["package-without-a-row", "packages/novelty/src/index.ts"],
    ["unresolvable", "packages/outbox/src/nowhere.ts"]
  ])("report %s in %s", (rule, from) => {
    expect(violations.filter((violation) => violation.from === from).map((violation) => violation.rule.name)).toContain(
      rule
    )
  })

  it("cannot be bypassed by an import() type, which the linter refuses", () => {
    writeFileSync(join(tree, "hidden.ts"), `export type Both = import("./packages/kafkajs/src/allowed.ts").Both`)
    const biome = join(root, "node_modules/.bin/biome")
    const run = spawnSync(biome, ["lint", "--config-path", root, "hidden.ts"], { cwd: tree, encoding: "utf8" })
    expect(run.stdout + run.stderr).toContain("dependency rules do not see import() types")
    expect(run.status).toBe(1)
  })

  it("accept allowed imports", () => {
    expect(violations.filter(({ from }) => /allowed|core\/src\/index/.test(from))).toEqual([])
  })
})
