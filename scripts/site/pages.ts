/**
 * The pages of the documentation: which files they are, and where each stands on the site.
 */
import { globSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"

export interface Page {
  /** Path of its Markdown from the root of the tree, such as `docs/guide/start.md`. */
  readonly source: string
  /** Path on the site without an extension, such as `guide/start`. `.html` and `.md` stand beside each other. */
  readonly path: string
  readonly markdown: string
  /** Its first heading. */
  readonly heading: string
}

const patterns = ["*.md", "docs/**/*.md", "packages/*/README.md"]

/** All pages by their source. Throws when a page has no heading. */
export const readPages = (root: string): ReadonlyMap<string, Page> =>
  new Map(
    globSync(patterns, { cwd: root })
      .sort()
      .map((source) => [source, readPage(root, source)])
  )

const readPage = (root: string, source: string): Page => {
  const markdown = readFileSync(join(root, source), "utf8")
  const heading = /^# (.+)$/m.exec(markdown)?.[1]
  if (heading === undefined) throw new Error(`${source} has no heading: a page of the site begins with '# Title'`)
  return { source, path: pathOf(source), markdown, heading }
}

/** `docs/` is the root of the site; the README of a folder is its `index`. */
const pathOf = (source: string): string => {
  const folder = posix.dirname(source).replace(/^docs(?:\/|$)/, "")
  const name = posix.basename(source, ".md")
  return posix.join(folder, name === "README" ? "index" : name.replace(/^[A-Z]+$/, (all) => all.toLowerCase()))
}

/** The relative link from a page, by its path, to a file of the site. */
export const linkBetween = (from: string, to: string): string => posix.relative(posix.dirname(from), to)

/** The plain words of inline Markdown: a heading, or a sentence. */
export const plainText = (markdown: string): string =>
  markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[`*]/g, "")
    .replace(/\s+/g, " ")
    .trim()

/** The first sentence below the heading, for lists of pages. */
export const summaryOf = ({ markdown }: Page): string => {
  const prose = markdown.replace(/^(```|~~~)[\s\S]*?^\1.*$/gm, "").split(/\n\s*\n/)
  const paragraph = prose.map((block) => block.trim()).find((block) => /^[\p{L}`[*]/u.test(block)) ?? ""
  const text = plainText(paragraph)
  const end = text.search(/[.?!:](?= |$)/)
  return end === -1 ? text : text.slice(0, end + 1)
}
