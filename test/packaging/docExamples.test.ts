import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { markdownBlocks } from "../../scripts/markdownBlocks.ts"

const script = fileURLToPath(new URL("../../scripts/checkDocs.ts", import.meta.url))

describe("markdownBlocks", () => {
  it("finds each fenced block with the line of its code", () => {
    const markdown = ["# Title", "```ts", "const a = 1", "```", "- item", "  ~~~sh", "  ls", "  ~~~"].join("\n")
    expect(markdownBlocks(markdown)).toEqual([
      { language: "ts", code: "const a = 1", line: 3 },
      { language: "sh", code: "ls", line: 7 }
    ])
  })

  it("does not end a block at a shorter fence inside it", () => {
    expect(markdownBlocks("````md\n```ts\n```\n````\n").map((block) => block.code)).toEqual(["```ts\n```"])
  })
})

describe("the check of the documentation", () => {
  const check = (markdown: string) => {
    const folder = mkdtempSync(join(tmpdir(), "docs-"))
    writeFileSync(join(folder, "page.md"), markdown)
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, join(folder, "page.md")], {
      encoding: "utf8"
    })
    rmSync(folder, { recursive: true })
    return { status, output: stdout + stderr }
  }

  it("RCH-12 names file and line of a type error, of a failed command, and of a program that fails", () => {
    const { status, output } = check(
      ["```ts", 'import { Effect } from "effect"', 'const a: Effect.Effect<number> = Effect.succeed("a")', "```"]
        .concat(["```sh", "# runs in CI", "exit 3", "```"])
        .concat(["```ts", "// runs in CI", 'import { Serde } from "@eventbus/core"'])
        .concat(['throw new Error(Serde.string.name + " is there")', "```"])
        .join("\n")
    )
    expect(status).toBe(1)
    expect(output).toMatch(/page\.md:3:7: error TS\d+: Type 'Effect<string, never, never>'/)
    expect(output).toMatch(/page\.md:6: the block exited with 3/)
    expect(output).toMatch(/page\.md:10: the block exited with 1[\s\S]*Error: string is there/)
  })

  it("accepts correct blocks, and runs only marked ones", () => {
    const { status, output } = check(
      '```ts\nimport { Broker } from "@eventbus/core"\nexport type B = Broker.Broker\n```\n```sh\nexit 3\n```\n'
    )
    expect(output).toContain("1 ts blocks with 0 type errors; 0 blocks run")
    expect(status).toBe(0)
  })

  it("RES-14: the guide says for each kind of failure whether to retry it", () => {
    const [retried, givenUp] = ["retry", "give up"].map((_, column) =>
      readFileSync(fileURLToPath(new URL("../../docs/guide/errors.md", import.meta.url)), "utf8")
        .split("\n")
        .filter((line) => line.startsWith("|"))
        .map((line) => line.split("|")[column + 1] ?? "")
        .join("\n")
    )
    for (const sort of ["network timeout", "database connection", "rate limit", "temporarily unavailable"])
      expect(retried).toContain(sort)
    for (const sort of ["bad format", "business rule", "authentication", "data is missing"])
      expect(givenUp).toContain(sort)
  })
})
