/** The HTML around the text of a page: header with search, navigation, list of headings, the pages before and after. */
import type { Heading } from "./markdown.ts"
import type { Entry, Group, Section } from "./outline.ts"
import { linkBetween, type Page } from "./pages.ts"

export interface Shown {
  readonly page: Page
  readonly title: string
  readonly section: string
  readonly html: string
  readonly headings: ReadonlyArray<Heading>
  readonly summary: string
  readonly before: Entry | undefined
  readonly after: Entry | undefined
}

const siteName = "Event Bus Connector"

/** Text in HTML, in an attribute too. */
export const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

/** The whole document. Every address in it is relative: the site works under any path, and from a disk. */
export const layout = (shown: Shown, sections: ReadonlyArray<Section>): string => {
  const { page, title, summary } = shown
  const to = (path: string) => linkBetween(page.path, path)
  const name = page.path === "index" ? siteName : `${title} · ${siteName}`
  return `<!doctype html>
<html lang="en" data-root="${to("x").slice(0, -1)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(name)}</title>
<meta name="description" content="${escaped(summary)}">
<link rel="icon" href="${to("assets/icon.svg")}">
<link rel="alternate" type="text/markdown" href="${to(`${page.path}.md`)}">
<link rel="stylesheet" href="${to("assets/site.css")}">
<script src="${to("assets/site.js")}"></script>
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
<header>
<a class="brand" href="${to("index.html")}">${siteName}</a>
<form class="search" role="search">
<label class="hidden" for="search">Search the documentation</label>
<input id="search" type="search" placeholder="Search (press /)" autocomplete="off" aria-controls="found">
<div class="found" id="found" hidden></div>
</form>
<button class="menu" type="button" id="menu" aria-expanded="false" aria-controls="contents">Contents</button>
<button type="button" id="theme">Dark</button>
</header>
<div class="columns">
<nav class="contents" id="contents" aria-label="Contents">
${navigation(shown, sections)}</nav>
<main id="text" tabindex="-1">
<article>
<p class="place">${escaped(shown.section)} · <a href="${to(`${page.path}.md`)}">this page as Markdown</a></p>
${shown.html}</article>
${neighbours(shown)}</main>
${headingList(shown)}</div>
</body>
</html>
`
}

const navigation = (shown: Shown, sections: ReadonlyArray<Section>): string =>
  sections
    .map(
      ({ title, entries, groups }) =>
        `<h2>${escaped(title)}</h2>\n<ul>\n${entries.map((entry) => item(shown, entry)).join("")}${groups
          .map((group) => groupItem(shown, group))
          .join("")}</ul>\n`
    )
    .join("")

const item = ({ page }: Shown, { title, page: target }: Entry): string => {
  const current = target === page ? ' aria-current="page"' : ""
  return `<li><a href="${linkBetween(page.path, `${target.path}.html`)}"${current}>${escaped(title)}</a></li>\n`
}

/** The pages of a group are listed on its own pages; elsewhere its name leads to the first of them. */
const groupItem = (shown: Shown, { title, entries }: Group): string => {
  const [first] = entries
  if (first === undefined) return ""
  if (!entries.some(({ page }) => page === shown.page)) return item(shown, { title, page: first.page })
  return `<li><span class="group">${escaped(title)}</span>\n<ul>\n${entries
    .map((entry) => item(shown, entry))
    .join("")}</ul></li>\n`
}

const headingList = ({ headings }: Shown): string => {
  const below = headings.filter(({ level }) => level === 2)
  if (below.length < 2) return ""
  const items = below.map(({ anchor, text }) => `<li><a href="#${escaped(anchor)}">${escaped(text)}</a></li>\n`)
  return `<nav class="headings" aria-label="On this page">\n<p>On this page</p>\n<ul>\n${items.join("")}</ul>\n</nav>\n`
}

const neighbours = ({ page, before, after }: Shown): string => {
  const link = (word: string, entry: Entry | undefined) =>
    entry === undefined
      ? ""
      : `<a href="${linkBetween(page.path, `${entry.page.path}.html`)}"><span>${word}</span> ${escaped(entry.title)}</a>\n`
  return `<nav class="neighbours" aria-label="Pages before and after">\n${link("Before:", before)}${link("Next:", after)}</nav>\n`
}
