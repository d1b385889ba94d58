/**
 * The index of the search, as a script that a page loads when somebody begins to search: a page opened from a disk may load scripts, and no data.
 */
import MiniSearch from "minisearch"
import type { Passage } from "./markdown.ts"
import type { Page } from "./pages.ts"

/** The options that both sides share: those who search must read words as those who index. */
export const searchOptions = {
  fields: ["heading", "title", "words"],
  storeFields: ["heading", "title", "url", "section"]
}

export interface Searched {
  readonly page: Page
  readonly title: string
  readonly section: string
  readonly passages: ReadonlyArray<Passage>
}

/** The global name that the script gives the index. */
export const indexScript = (pages: ReadonlyArray<Searched>): string =>
  `globalThis.searchIndex = ${JSON.stringify({ options: searchOptions, index: indexOf(pages) })}\n`

const indexOf = (pages: ReadonlyArray<Searched>): MiniSearch => {
  const index = new MiniSearch(searchOptions)
  const passages = pages.flatMap(({ page, title, section, passages: below }) =>
    below.map(({ text: heading, anchor, level, words }) => ({
      heading,
      title,
      section,
      words,
      url: `${page.path}.html${level === 1 ? "" : `#${anchor}`}`
    }))
  )
  index.addAll(passages.map((passage, id) => ({ id, ...passage })))
  return index
}
