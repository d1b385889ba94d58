/** The documentation as a site: what is built, what is found, and what the build refuses. */
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { runInNewContext } from "node:vm"
import MiniSearch, { type AsPlainObject, type Options } from "minisearch"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { buildSite } from "../../scripts/site/buildSite.ts"
import { checkBuilt } from "../../scripts/site/checkBuilt.ts"
import { readPages } from "../../scripts/site/pages.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const out = mkdtempSync(join(tmpdir(), "site-"))
const read = (path: string) => readFileSync(join(out, path), "utf8")

beforeAll(() => void buildSite({ root, out }))
afterAll(() => rmSync(out, { recursive: true, force: true }))

/** A copy of the built site with one more page. */
const faultsWith = (html: string): ReadonlyArray<string> => {
  const copy = mkdtempSync(join(tmpdir(), "site-"))
  cpSync(out, copy, { recursive: true })
  writeFileSync(join(copy, "guide/planted.html"), html)
  const { faults } = checkBuilt(copy)
  rmSync(copy, { recursive: true })
  return faults
}

/** Builds a tree of a few files. Answers the folder of the site. */
const built = (files: Readonly<Record<string, string>>, repository?: string): string => {
  const tree = mkdtempSync(join(tmpdir(), "tree-"))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), content)
  }
  const site = join(tree, "site")
  const outline = join(tree, "outline.json")
  buildSite({ root: tree, out: site, outline, ...(repository === undefined ? {} : { repository }) })
  return site
}

const outlineOf = (...pages: ReadonlyArray<string>) =>
  JSON.stringify([{ title: "All", pages: pages.map((page) => ({ page, title: page })) }])

describe("the site of the documentation", () => {
  it("RCH-12 every document is a page, with its Markdown beside it, and stands in llms.txt", () => {
    const pages = [...readPages(root).values()]
    const listed = read("llms.txt")
    expect(pages.length).toBeGreaterThan(200)
    expect(globSync("docs/**/*.md", { cwd: root }).filter((path) => !readPages(root).has(path))).toEqual([])
    for (const { path } of pages) {
      expect(existsSync(join(out, `${path}.html`)), path).toBe(true)
      expect(existsSync(join(out, `${path}.md`)), path).toBe(true)
      expect(listed).toContain(`](${path}.md)`)
    }
  })

  it("RCH-12 every page can be reached from the first one by links", () => {
    const reached = new Set(["index.html"])
    for (const page of reached)
      for (const [, address] of read(page).matchAll(/<a[^>]* href="([^":#]+\.html)[#"]/g))
        reached.add(join(dirname(page), address!))
    expect(
      [...readPages(root).values()].map(({ path }) => `${path}.html`).filter((path) => !reached.has(path))
    ).toEqual([])
  })

  it("RCH-12 no link of the built pages leads nowhere, and a planted one is reported", () => {
    const { faults, links } = checkBuilt(out)
    expect(faults).toEqual([])
    expect(links).toBeGreaterThan(10_000)
    expect(faultsWith('<a href="retries.html#what-it-costs">')).toEqual([])
    expect(
      faultsWith(
        '<a href="gone.html"><a href="retries.html#gone"><a href="#here"><a href="/guide/retries.html"><script src="https://cdn.example/x.js">'
      )
    ).toEqual([
      "guide/planted.html: gone.html leads to nothing",
      "guide/planted.html: retries.html#gone: guide/retries.html has no such anchor",
      "guide/planted.html: #here: guide/planted.html has no such anchor",
      "guide/planted.html: /guide/retries.html is not relative",
      "guide/planted.html: loads https://cdn.example/x.js from elsewhere"
    ])
  })

  it("RCH-12 the build refuses an outline that lacks a page, or names one that is not there, and a document that links to nothing", () => {
    const page = { "docs/a.md": "# A\n\nText.\n", "docs/b.md": "# B\n\n[A](a.md)\n" }
    expect(() => built({ ...page, "outline.json": outlineOf("docs/a.md", "docs/c.md") })).toThrow(
      /outline\.json:\n {2}there is no docs\/c\.md\n {2}docs\/b\.md stands in no section/
    )
    expect(() => built({ ...page, "outline.json": outlineOf("docs/a.md", "docs/b.md", "docs/a.md") })).toThrow(
      "docs/a.md stands there twice"
    )
    expect(() => built({ "docs/a.md": "# A\n\n[B](b.md)\n", "outline.json": outlineOf("docs/a.md") })).toThrow(
      "docs/a.md links to b.md, but there is no docs/b.md"
    )
  })

  it("RCH-12 a link to a source is plain text, or leads to the repository where its address is given", () => {
    const files = {
      "docs/a.md": "# A\n\n[the **code**](../src/a.ts#L3), [B](b.md#more)\n",
      "docs/b.md": "# B\n\n## More\n",
      "src/a.ts": "",
      "outline.json": outlineOf("docs/a.md", "docs/b.md")
    }
    const alone = built(files)
    expect(readFileSync(join(alone, "a.html"), "utf8")).toContain(
      '<p>the <strong>code</strong>, <a href="b.html#more">B</a></p>'
    )
    expect(readFileSync(join(alone, "a.md"), "utf8")).toContain("the **code**, [B](b.md#more)")
    const linked = built(files, "https://host.example/bus/blob/main")
    expect(readFileSync(join(linked, "a.html"), "utf8")).toContain(
      '<a href="https://host.example/bus/blob/main/src/a.ts#L3">the <strong>code</strong></a>'
    )
  })

  it("RCH-12 text of a document is text on its page: no markup of it takes effect", () => {
    const site = built({
      "docs/a.md": '# <script>alert(1)</script>\n\n<img src=x> "quoted"\n',
      "outline.json": outlineOf("docs/a.md")
    })
    expect(readFileSync(join(site, "a.html"), "utf8")).not.toMatch(/<script>|<img src=x/)
  })

  it("RCH-12 the first screen of the README has 300 words at most, both doors, and the console", () => {
    const [first = ""] = readFileSync(join(root, "README.md"), "utf8").split("\n## ")
    expect(first.replace(/\]\([^)]*\)/g, "]").split(/\s+/).length).toBeLessThanOrEqual(300)
    expect(first).toMatch(/\(docs\/guide\/node\.md\).*\[Effect\]/)
    expect(first).toContain("docs/images/console.png")
  })

  it("RCH-12 the search finds a page by a word of its text, a heading, a name of the API, and the beginning of a word", () => {
    const context: { searchIndex?: { readonly index: AsPlainObject; readonly options: Options } } = {}
    runInNewContext(read("assets/search-index.js"), context)
    const { index, options } = context.searchIndex!
    const search = MiniSearch.loadJS(index, options)
    const urls = (text: string) =>
      search.search(text, { prefix: true, combineWith: "AND" }).map(({ url }) => String(url))
    expect(urls("tombstone")).toContain("guide/handlers.html#serdes")
    expect(urls("exactly when is a record repeated")[0]).toBe("guide/guarantees.html")
    expect(urls("RetryableTopic").some((url) => url.startsWith("guide/move-from-spring.html"))).toBe(true)
    expect(urls("fixedDelay")).toContain("reference/core/RetryPolicy.html#fixeddelay")
    expect(urls("thiswordisnowhere")).toEqual([])
  })
})
