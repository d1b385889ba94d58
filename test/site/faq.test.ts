/** The answers by error message answer messages that the sources have. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

const messages = [...readFileSync(join(root, "docs/guide/faq.md"), "utf8").matchAll(/^### (.*)$/gm)].map(
  ([, heading]) => heading!.replace(/^`+ ?| ?`+$/g, "")
)

/** Sources without the marks that a text in quotes needs. */
const sources = globSync("packages/*/src/**/*.ts", { cwd: root, exclude: ["packages/{examples,benchmarks}/**"] }).map(
  (path) => readFileSync(join(root, path), "utf8").replaceAll("\\`", "`").replaceAll("\\'", "'")
)

/** Whether a text has these parts in this order, a line of code between two of them at most. */
const hasInOrder = (text: string, parts: ReadonlyArray<string>): boolean => {
  const escaped = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
  return new RegExp(escaped.join("[^\\n]*?")).test(text)
}

describe("answers by error message", () => {
  it("RCH-12 there are thirty at least, each once", () => {
    expect(messages.length).toBeGreaterThanOrEqual(30)
    expect(new Set(messages).size).toBe(messages.length)
  })

  it.each(messages)("RCH-12 a source has the message: %s", (message) => {
    const parts = message.split("…").filter((part) => /\w{2}/.test(part))
    expect(parts).not.toEqual([])
    expect(sources.some((text) => hasInOrder(text, parts))).toBe(true)
  })

  it("RCH-12 a message that no source has would be noticed", () => {
    expect(sources.some((text) => hasInOrder(text, ["No broker of [", "] can be bribed"]))).toBe(false)
  })
})
