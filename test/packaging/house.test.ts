import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { settingsPage } from "../../scripts/house/settingsReference.ts"

const script = fileURLToPath(new URL("../../scripts/checkHouse.ts", import.meta.url))

const lines = (count: number, line: string) => `${line}\n`.repeat(count)
const manifest = JSON.stringify({ name: "@eventbus/core", exports: { ".": "./src/index.ts", "./*": "./src/*.ts" } })

/** A tree that keeps every rule. */
const sound: Record<string, string> = {
  "packages/core/package.json": manifest,
  "packages/core/src/index.ts": `export * as Door from "./Door.ts"\n`,
  "packages/core/src/Door.ts": [
    "/** Doors of the house (ruling 1, connector seed §4.7). */",
    `import { Schema } from "effect"`,
    `import { close } from "./internal/door/hinge.ts"`,
    "/** A door that does not open. */",
    `export class DoorStuck extends Schema.TaggedError<DoorStuck>()("DoorStuck", {`,
    "  /** Its name. */",
    "  name: Schema.String",
    "}) {}",
    "/** What is told of a door? Its name, and whether it is open. */",
    "export interface Door {",
    "  /** Its name. */",
    "  readonly name: string",
    "}",
    "/** Closes a door. A record in flight stays in place. */",
    "export const shut = (door: Door) => close(door.name) ?? new DoorStuck(door)",
    ""
  ].join("\n"),
  "packages/core/src/internal/door/hinge.ts": [
    lines(40, "// A comment line is not counted."),
    "export const close = (name: string) => {",
    lines(68, "  name.trim()"),
    lines(20, "  // Nor is this one."),
    "}",
    "// Over 70 lines: this one is a hot loop, and a call for each step costs a tenth.",
    "const long = () => {",
    lines(80, "  close('a')"),
    "}",
    "long()",
    ""
  ].join("\n"),
  "packages/core/src/internal/door/README.md": "# door\n\nOwns doors.\n\n- Never locks one.\n",
  "docs/architecture.md":
    "[the door](../packages/core/src/Door.ts#L1) `door/hinge.ts` [below](#the-door)\n\n# The door\n",
  "docs/rules.md": "# Rules\n",
  "docs/rules/rulings.md":
    "| id | rule |\n|---|---|\n| ruling 1 | Doors close. |\n| RTY-08 | Again. |\n| connector seed §4.7 | All. |\n"
}

/** One violation of each rule, by the check that sees it: file, its text, what is reported. */
const planted: ReadonlyArray<readonly [check: string, file: string, text: string, report: string]> = [
  [
    "limits",
    "packages/core/src/internal/long.ts",
    `const long = () => {\n${lines(70, "  1")}}\nlong()\n`,
    ":1: long has 72 code lines"
  ],
  ["limits", "packages/core/src/internal/file.ts", lines(301, "1"), ": 301 lines, allowed are 300"],
  ["limits", "test/simulation/helper.ts", lines(301, "1"), ": 301 lines, allowed are 300"],
  [
    "docstrings",
    "packages/core/src/Module.ts",
    `/** A. */\nimport "effect"\nexport const a = 1\n`,
    ":3: a has no docstring"
  ],
  [
    "docstrings",
    "packages/core/src/Bare.ts",
    "const a = 1\n/** A. */\nexport const b = a\n",
    ":1: the module has no docstring"
  ],
  [
    "docstrings",
    "packages/core/src/Members.ts",
    "/** A. */\n\n/** B. */\nexport interface B {\n  readonly c: string\n}\n",
    ":5: B.c has no docstring"
  ],
  [
    "docstrings",
    "packages/core/src/Service.ts",
    `/** A. */\nimport { Context } from "effect"\n/** S. */\nexport class S extends Context.Service<S, {\n  readonly get: () => string\n}>()("S") {}\n`,
    ":5: S.get has no docstring"
  ],
  [
    "unused-exports",
    "packages/core/src/internal/alone.ts",
    "export const alone = 1\n",
    ":1: alone is exported, and no other file uses it"
  ],
  ["unused-exports", "packages/core/src/internal/whole.ts", `import * as Tools from "./tools.ts"\nTools.used()\n`, ""],
  [
    "unused-exports",
    "packages/core/src/internal/tools.ts",
    "export const used = () => 1\nexport const unused = () => 2\n",
    ":2: unused is exported, and no other file uses it"
  ],
  ["unused-exports", "packages/core/src/internal/tested.ts", "export const tested = 1\n", ":1: only tests use tested"],
  [
    "unused-exports",
    "packages/core/test/tested.test.ts",
    `import { tested } from "../src/internal/tested.ts"\ntested\n`,
    ""
  ],
  [
    "unused-exports",
    "packages/core/src/NeverRaised.ts",
    `/** A. */\nimport { Schema } from "effect"\n/** B. */\nexport class NeverRaised extends Schema.TaggedError<NeverRaised>()("NeverRaised", {}) {}\n`,
    ":4: nothing raises NeverRaised"
  ],
  [
    "citations",
    "packages/core/src/internal/cites.ts",
    "// Rulings 1 to 3 hold.\n",
    ":1: docs/rules holds no 'ruling 3'"
  ],
  ["citations", "test/cites.test.ts", `it("RTY-09 C77 waits", () => {})\n`, ":1: docs/rules holds no 'RTY-09'"],
  ["citations", "test/case.test.ts", `it("C77 waits", () => {})\n`, ":1: docs/rules holds no 'C77'"],
  [
    "citations",
    "docs/section.md",
    "As the connector seed §4.8 says.\n",
    ":1: docs/rules holds no 'connector seed §4.8'"
  ],
  ["words", "packages/core/src/internal/copies.ts", "// An outstanding copy.\n", ":1: 'outstanding': say"],
  ["words", "docs/words.md", "\nNothing is wrong with it: silence is no trouble.\n", ":2: 'trouble': say"],
  [
    "sentences",
    "docs/sentences.md",
    "# What is this\n\nA door. Who opens it waits. Who is it?\n",
    `:3: begins with its object: "Who opens it waits."`
  ],
  [
    "sentences",
    "packages/core/src/internal/sentences.ts",
    "/**\n * What a door\n * is.\n */\n",
    `:2: begins with its object: "What a door is."`
  ],
  ["rooms", "packages/core/src/internal/window/glass.ts", "export {}\n", ""],
  ["links", "docs/links.md", "[nowhere](nowhere.md)\n", ":1: there is no docs/nowhere.md"],
  [
    "links",
    "docs/anchors.md",
    "[nowhere](architecture.md#the-window)\n",
    ":1: docs/architecture.md has no heading #the-window"
  ]
]

const root = fileURLToPath(new URL("../..", import.meta.url))

const plant = (tree: string, files: Record<string, string>) => {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, file)), { recursive: true })
    writeFileSync(join(tree, file), text)
  }
}

const run = (files: Record<string, string>, ...checks: ReadonlyArray<string>) => {
  const tree = mkdtempSync(join(tmpdir(), "house-"))
  plant(tree, files)
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...checks, "--root", tree], {
    encoding: "utf8"
  })
  rmSync(tree, { recursive: true, force: true })
  return { status, stdout, reports: stderr.split("\n").filter((line) => line !== "") }
}

describe("the checks of the house", () => {
  it("pass a tree that keeps every rule", () => {
    const { status, reports, stdout } = run(sound, ...new Set(planted.map(([check]) => check)))
    expect(reports).toEqual([])
    expect(status).toBe(0)
    expect(stdout).toContain("packages/core: 0 of 3 exports and 0 of 2 members lack one")
    expect(stdout).toContain("exempt by name: packages/core/src/internal/door/hinge.ts long")
  })

  describe("in a tree with one violation of each rule", () => {
    let outcome: ReturnType<typeof run>
    beforeAll(() => {
      outcome = run({ ...sound, ...Object.fromEntries(planted.map(([, file, text]) => [file, text])) })
    })

    it.each(planted.filter(([, , , report]) => report !== ""))("%s reports %s", (_, file, __, report) => {
      expect(
        outcome.reports.filter((line) => line.startsWith(file + report.slice(0, report.indexOf(" "))))
      ).toContainEqual(expect.stringContaining(file + report))
    })

    it("fail", () => expect(outcome.status).toBe(1))
  })

  it.each([...new Set(planted.map(([check]) => check))])("%s fails by itself", (check) => {
    const violations = planted.filter(([name]) => name === check).map(([, file, text]) => [file, text])
    expect(run({ ...sound, ...Object.fromEntries(violations) }, check).status).toBe(1)
    expect(run(sound, check).status).toBe(0)
  })

  it("links sees a path of the architecture page that nothing has", () => {
    const { reports } = run({ ...sound, "docs/architecture.md": "\n`door/window.ts`\n\n# The window\n" }, "links")
    expect(reports).toEqual(["docs/architecture.md:2: nothing is named door/window.ts"])
  })

  it("rooms sees a room without a README, one with too long a README, and one that may do everything", () => {
    const room = "packages/core/src/internal/door/README.md"
    const { [room]: _, ...without } = sound
    expect(run(without, "rooms").reports).toEqual([`${room}: is missing: it says what the room owns`])
    expect(run({ ...sound, [room]: lines(11, "Never.") }, "rooms").reports).toEqual([
      `${room}: 11 lines, allowed are 10`
    ])
    expect(run({ ...sound, [room]: "Owns doors.\n" }, "rooms").reports).toEqual([
      `${room}: does not say what the room never does`
    ])
  })

  it("reference sees a page that differs from the docstrings, and one that is missing", () => {
    const build = {
      ...sound,
      "packages/core/dist/Door.d.ts": "export declare const shut: (door: Door) => string | DoorStuck;\n"
    }
    const pages = { "docs/reference/core/Door.md": "# Module Door\n", "docs/reference/core/Old.md": "" }
    expect(run({ ...build, ...pages }, "reference").reports).toEqual([
      "docs/reference/README.md: is missing: pnpm docs:reference writes it",
      "docs/reference/errors.md: is missing: pnpm docs:reference writes it",
      "docs/reference/core/Door.md: differs from the docstrings: pnpm docs:reference writes it anew",
      "docs/reference/core/Old.md: belongs to no public module"
    ])
  })

  it("RCH-12 reference sees a table of settings that differs from the schema of configuration files", () => {
    const setting = { title: "maxDoors", description: "Doors. Default 3. Allowed: 1 to 9.", default: 3 }
    const binding = { type: "object", properties: { maxDoors: setting, "max-doors": setting } }
    const named = { additionalProperties: binding }
    const eventbus = { properties: { bindings: named, clusters: named, fleet: binding, audit: binding } }
    const tree = {
      ...sound,
      "packages/core/dist/Door.d.ts": "export declare const shut: (door: Door) => string | DoorStuck;\n",
      "packages/config/eventbus.schema.json": JSON.stringify({ properties: { eventbus } }),
      "docs/reference/settings.md": "| `maxDoors` | `max-doors` | `MAX_DOORS` | 4 | 1 to 9 | Doors. |"
    }
    expect(run(tree, "reference").reports).toContain(
      "docs/reference/settings.md: differs from the docstrings: pnpm docs:reference writes it anew"
    )
    const home = mkdtempSync(join(tmpdir(), "house-"))
    plant(home, tree)
    const page = settingsPage(home) ?? ""
    rmSync(home, { recursive: true, force: true })
    expect(page).toContain("| `maxDoors` | `max-doors` | `MAX_DOORS` | 3 | 1 to 9 | Doors. |")
    expect(run({ ...tree, "docs/reference/settings.md": page }, "reference").reports.join("\n")).not.toContain(
      "settings.md"
    )
  })

  it("every path that the architecture page names exists, and its last table has thirty rows or more", () => {
    const { status, stderr } = spawnSync(process.execPath, [script, "links"], { encoding: "utf8" })
    expect(stderr).toBe("")
    expect(status).toBe(0)
    const page = readFileSync(join(root, "docs/architecture.md"), "utf8")
    const table = page.slice(page.indexOf("| I want to change"))
    expect(table.split("\n").filter((line) => line.includes("](../")).length).toBeGreaterThanOrEqual(30)
  })

  it("an unknown check is refused", () => {
    expect(run(sound, "nothing").status).not.toBe(0)
  })
})
