/**
 * From the Markdown of a page to its HTML: anchors as GitHub gives them, links of the site, coloured code, and tables that scroll by themselves.
 */
import hljs from "highlight.js/lib/core"
import shell from "highlight.js/lib/languages/bash"
import java from "highlight.js/lib/languages/java"
import json from "highlight.js/lib/languages/json"
import sql from "highlight.js/lib/languages/sql"
import typescript from "highlight.js/lib/languages/typescript"
import yaml from "highlight.js/lib/languages/yaml"
import MarkdownIt, { type Token } from "markdown-it"
import { anchorsOf } from "../house/anchors.ts"
import { addressOf, type Target, type Tree, targetOf } from "./links.ts"
import { type Page, plainText } from "./pages.ts"

hljs.registerLanguage("json", json)
hljs.registerLanguage("sh", shell)
hljs.registerLanguage("java", java)
hljs.registerLanguage("sql", sql)
hljs.registerLanguage("ts", typescript)
hljs.registerLanguage("yaml", yaml)
hljs.registerAliases(["tsx", "js", "typescript"], { languageName: "ts" })
hljs.registerAliases(["bash", "shell"], { languageName: "sh" })

export interface Heading {
  readonly level: number
  readonly text: string
  readonly anchor: string
}

/** A heading with the words that stand below it, for the search. */
export interface Passage extends Heading {
  readonly words: string
}

export interface Rendered {
  readonly html: string
  readonly passages: ReadonlyArray<Passage>
  /** Images that the page shows: where they are in the tree and on the site. */
  readonly images: ReadonlyArray<{ readonly source: string; readonly path: string }>
}

export const render = (tree: Tree, page: Page): Rendered => {
  const markdown = new MarkdownIt({ html: false, linkify: false, highlight: coloured })
  const tokens = markdown.parse(page.markdown, {})
  const headings = anchorHeadings(tokens)
  const images = rewriteLinks(tree, page, tokens)
  withoutEmptyHeaders(tokens)
  const { rules } = markdown.renderer
  rules.table_open = () => `<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>\n`
  rules.table_close = () => "</table></div>\n"
  // A block may be wider than the page: somebody without a mouse scrolls it with the arrow keys.
  const html = markdown.renderer.render(tokens, markdown.options, {}).replaceAll("<pre>", '<pre tabindex="0">')
  return { html, images, passages: passagesOf(tokens, headings) }
}

const coloured = (code: string, language: string): string =>
  hljs.getLanguage(language) === undefined ? "" : hljs.highlight(code, { language, ignoreIllegals: true }).value

/** Gives each heading its anchor, and answers the headings in their order. */
const anchorHeadings = (tokens: ReadonlyArray<Token>): ReadonlyArray<Heading> => {
  const opened = [...tokens.entries()].filter(([, { type }]) => type === "heading_open")
  const anchors = anchorsOf(opened.map(([index]) => tokens[index + 1]!.content))
  return opened.map(([index, token], position) => {
    const anchor = anchors[position]!
    token.attrSet("id", anchor)
    return { level: Number(token.tag.slice(1)), text: plainText(tokens[index + 1]!.content), anchor }
  })
}

/** A header without words is none: a reader of the screen would announce an empty one. */
const withoutEmptyHeaders = (tokens: ReadonlyArray<Token>): void => {
  for (const [index, token] of tokens.entries()) {
    if (token.type !== "th_open" || tokens[index + 1]?.content !== "") continue
    token.tag = "td"
    tokens[index + 2]!.tag = "td"
  }
}

/** Links of the tree become links of the site; one that leads to nothing on the site becomes plain text. */
const rewriteLinks = (tree: Tree, page: Page, tokens: ReadonlyArray<Token>): Rendered["images"] => {
  const images: Array<Extract<Target, { readonly _tag: "Image" }>> = []
  const withoutLink: Array<boolean> = []
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    if (token.type === "link_close" && withoutLink.pop() === true) hide(token)
    if (token.type !== "link_open" && token.type !== "image") continue
    const name = token.type === "image" ? "src" : "href"
    const target = targetOf(tree, page, String(token.attrGet(name)))
    const address = addressOf(page, target, "html")
    if (target._tag === "Image") images.push(target)
    if (token.type === "link_open") withoutLink.push(address === undefined)
    if (address === undefined) hide(token)
    else token.attrSet(name, address)
  }
  return images
}

/** An empty text in place of the tag. */
const hide = (token: Token): void => {
  token.type = "text"
  token.content = ""
  token.tag = ""
}

/** The words of a page by heading. Code is searched too, signatures are not: their names are headings already. */
const passagesOf = (tokens: ReadonlyArray<Token>, headings: ReadonlyArray<Heading>): ReadonlyArray<Passage> => {
  const words: Array<Array<string>> = headings.map(() => [])
  let current = -1
  for (const [index, token] of tokens.entries()) {
    if (token.type === "heading_open") current++
    const isHeading = tokens[index - 1]?.type === "heading_open"
    if (current === -1 || isHeading) continue
    if (token.type === "inline") words[current]!.push(plainText(token.content))
    if (token.type === "fence" && token.info !== "tsx") words[current]!.push(token.content)
  }
  return headings.map((heading, index) => ({ ...heading, words: words[index]!.join(" ") }))
}
