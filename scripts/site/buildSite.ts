/**
 * Builds the documentation as a site: static pages with relative addresses, a Markdown file beside each of them, `llms.txt`, and a search that needs no server.
 */
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { layout } from "./layout.ts"
import { publishedMarkdown, type Tree } from "./links.ts"
import { render } from "./markdown.ts"
import { inOrder, readOutline, type Section } from "./outline.ts"
import { readPages, summaryOf } from "./pages.ts"
import { indexScript } from "./search.ts"

export interface SiteOptions {
  /** The tree whose documentation it is. */
  readonly root: string
  /** The folder of the site; what is in it is replaced. */
  readonly out: string
  /** The outline. Default: that of this folder. */
  readonly outline?: string
  /** Where the files of the tree stand on the web. Default: nowhere, and links to sources are plain text. */
  readonly repository?: string
}

const assets = join(import.meta.dirname, "assets")
/** The library of the search as a classic script, which its `exports` do not open. */
const miniSearch = join(import.meta.dirname, "../../node_modules/minisearch/dist/umd/index.js")

/** Builds the site and answers the number of its pages. Throws when the outline lacks a page, or a document links to nothing. */
export const buildSite = ({
  root,
  out,
  outline = join(import.meta.dirname, "outline.json"),
  repository
}: SiteOptions): number => {
  const pages = readPages(root)
  const sections = readOutline(outline, pages)
  const tree: Tree = { root, pages, ...(repository === undefined ? {} : { repository }) }
  rmSync(out, { recursive: true, force: true })
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(out, path)), { recursive: true })
    writeFileSync(join(out, path), content)
  }
  const entries = inOrder(sections)
  const searched = entries.map(({ page, title, section }, index) => {
    const { html, passages, images } = render(tree, page)
    const around = { before: entries[index - 1], after: entries[index + 1] }
    const shown = { page, title, section, html, headings: passages, summary: summaryOf(page), ...around }
    write(`${page.path}.html`, layout(shown, sections))
    write(`${page.path}.md`, publishedMarkdown(tree, page))
    for (const { source, path } of images) cpSync(join(root, source), join(out, path))
    return { page, title, section, passages }
  })
  write("llms.txt", llmsText(sections))
  cpSync(assets, join(out, "assets"), { recursive: true })
  cpSync(miniSearch, join(out, "assets/minisearch.js"))
  write("assets/search-index.js", indexScript(searched))
  return searched.length
}

/** All pages for a reader that is a program (https://llmstxt.org), by section. */
const llmsText = (sections: ReadonlyArray<Section>): string => {
  const lines = sections.flatMap(({ title, entries, groups }) => [
    `## ${title}`,
    "",
    ...[...entries, ...groups.flatMap((group) => group.entries)].map(
      ({ title: name, page }) => `- [${name}](${page.path}.md): ${summaryOf(page)}`
    ),
    ""
  ])
  return [
    "# Event Bus Connector",
    "",
    "> Kafka consumers for TypeScript: retries in place and through topics, dead letters, circuit breaker, transactions, outbox and operation, with Effect or with async functions.",
    "",
    ...lines
  ].join("\n")
}
