/**
 * Where a link of the documentation leads on the site.
 *
 * Documents link to each other, and to sources, by paths of the tree. Pages become links of the site. Everything else of the tree is not on the site: such a link leads
 * to the repository on the web where its address is given, and is no link otherwise.
 */
import { existsSync, statSync } from "node:fs"
import { join, posix } from "node:path"
import { linkBetween, type Page } from "./pages.ts"

export interface Tree {
  readonly root: string
  readonly pages: ReadonlyMap<string, Page>
  /** Where the files of the tree stand on the web, such as `https://host/owner/name/blob/main`. */
  readonly repository?: string
}

export type Target =
  | { readonly _tag: "Page"; readonly page: Page; readonly anchor: string }
  /** An image that the site has a copy of, by its path on the site. */
  | { readonly _tag: "Image"; readonly source: string; readonly path: string }
  /** An address outside of the site. */
  | { readonly _tag: "Outside"; readonly href: string }
  /** A file of the tree that no reader of the site can open. */
  | { readonly _tag: "NotPublished" }

export const targetOf = ({ root, pages, repository }: Tree, from: Page, href: string): Target => {
  if (/^[a-z]+:/i.test(href)) return { _tag: "Outside", href }
  const [file = "", anchor = ""] = href.split("#")
  const source = file === "" ? from.source : posix.join(posix.dirname(from.source), file)
  const page = pages.get(source) ?? pages.get(posix.join(source, "README.md"))
  if (page !== undefined) return { _tag: "Page", page, anchor }
  const path = join(root, source)
  if (!existsSync(path)) throw new Error(`${from.source} links to ${href}, but there is no ${source}`)
  if (/\.(?:png|svg|jpg)$/.test(source)) return { _tag: "Image", source, path: source.replace(/^docs\//, "") }
  if (repository === undefined || statSync(path).isDirectory()) return { _tag: "NotPublished" }
  return { _tag: "Outside", href: `${repository}/${source}${anchor === "" ? "" : `#${anchor}`}` }
}

/** The address of a target, seen from a page. Undefined when the site has none. */
export const addressOf = (from: Page, target: Target, extension: "html" | "md"): string | undefined => {
  switch (target._tag) {
    case "Outside":
      return target.href
    case "NotPublished":
      return undefined
    case "Image":
      return linkBetween(from.path, target.path)
    case "Page": {
      const anchor = target.anchor === "" ? "" : `#${target.anchor}`
      return target.page === from && anchor !== ""
        ? anchor
        : `${linkBetween(from.path, `${target.page.path}.${extension}`)}${anchor}`
    }
  }
}

/** The Markdown that stands beside a page, with the links of the site. */
export const publishedMarkdown = (tree: Tree, page: Page): string => {
  const parts = page.markdown.split(/(^(?:```|~~~)[\s\S]*?^(?:```|~~~)$)/gm)
  return parts.map((part, index) => (index % 2 === 1 ? part : withLinks(tree, page, part))).join("")
}

const withLinks = (tree: Tree, page: Page, prose: string): string =>
  prose.replace(/\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (link, text: string, href: string) => {
    const address = addressOf(page, targetOf(tree, page, href), "md")
    return address === undefined ? (link.startsWith("!") ? link : text) : `[${text}](${address})`
  })
