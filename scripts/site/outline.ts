/**
 * The outline of the site, from `outline.json`: sections of pages, in the order of the navigation.
 *
 * A page that stands in no section cannot be found by a reader: `readOutline` refuses it, as it refuses a page that does not exist or stands there twice.
 */
import { readFileSync } from "node:fs"
import { posix } from "node:path"
import type { Page } from "./pages.ts"
import { plainText } from "./pages.ts"

export interface Entry {
  readonly title: string
  readonly page: Page
}

/** Pages that the navigation shows folded, such as those of one package. */
export interface Group {
  readonly title: string
  readonly entries: ReadonlyArray<Entry>
}

export interface Section {
  readonly title: string
  readonly entries: ReadonlyArray<Entry>
  readonly groups: ReadonlyArray<Group>
}

/** A section as the file has it. */
interface Written {
  readonly title: string
  readonly pages: ReadonlyArray<{ readonly page: string; readonly title: string }>
  /** Folders whose pages, those of folders below included, stand there by themselves. `first` comes before them. */
  readonly folders?: ReadonlyArray<{ readonly title: string; readonly folder: string; readonly first?: string }>
}

export const readOutline = (file: string, pages: ReadonlyMap<string, Page>): ReadonlyArray<Section> => {
  const written: ReadonlyArray<Written> = JSON.parse(readFileSync(file, "utf8"))
  const faults: Array<string> = []
  const taken = new Set<string>()
  const take = (source: string): Page | undefined => {
    const page = pages.get(source)
    if (page === undefined) faults.push(`there is no ${source}`)
    if (taken.has(source)) faults.push(`${source} stands there twice`)
    taken.add(source)
    return page
  }
  const named = written.map(({ pages: listed }) =>
    listed.flatMap(({ page: source, title }): ReadonlyArray<Entry> => {
      const page = take(source)
      return page === undefined ? [] : [{ title, page }]
    })
  )
  const sections = written.map(({ title, folders = [] }, index): Section => {
    const groups = folders.flatMap(({ title: above, folder, first }) => {
      const inside = [...pages.keys()].filter((source) => source.startsWith(`${folder}/`) && !taken.has(source))
      const sources = first === undefined ? inside : [first, ...inside.filter((source) => source !== first)]
      const found = sources.flatMap((source) => take(source) ?? [])
      return groupsOf(above, folder, found)
    })
    return { title, entries: named[index]!, groups }
  })
  for (const source of pages.keys()) if (!taken.has(source)) faults.push(`${source} stands in no section`)
  if (faults.length > 0) throw new Error([`${file}:`, ...faults].join("\n  "))
  return sections
}

/** The pages right in the folder are one group, and those of each folder below are another. */
const groupsOf = (title: string, folder: string, pages: ReadonlyArray<Page>): ReadonlyArray<Group> => {
  const below = ({ source }: Page): string => {
    const rest = posix.relative(folder, posix.dirname(source))
    return rest === "" || rest.startsWith("..") || posix.basename(source) === "README.md" ? "" : rest
  }
  return [...Map.groupBy(pages, below)].map(([name, found]) => ({
    title: name === "" ? title : `${title}: ${name}`,
    entries: found.map((page) => ({ page, title: titleIn(folder, page) }))
  }))
}

const titleIn = (folder: string, { source, heading }: Page): string => {
  const isPackage = folder === "packages"
  return isPackage ? posix.basename(posix.dirname(source)) : plainText(heading).replace(/^Module /, "")
}

/** Every page in the order of the outline, with the section that it is in. */
export const inOrder = (sections: ReadonlyArray<Section>): ReadonlyArray<Entry & { readonly section: string }> =>
  sections.flatMap(({ title: section, entries, groups }) =>
    [...entries, ...groups.flatMap((group) => group.entries)].map((entry) => ({ ...entry, section }))
  )
