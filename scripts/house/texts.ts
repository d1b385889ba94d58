/**
 * The texts of the tree that the checks of words, sentences and citations read.
 */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"

export interface Text {
  /** Path from the root of the tree, with `/`. */
  readonly path: string
  readonly content: string
}

const code = ["packages/*/{src,test}/**/*.ts", "test/**/*.ts", "scripts/**/*.{ts,mjs}"]
const documents = ["*.md", "docs/**/*.md", "packages/*/*.md", "packages/*/src/**/*.md"]

const read = (root: string, patterns: ReadonlyArray<string>): ReadonlyArray<Text> =>
  globSync(patterns, { cwd: root })
    .sort()
    .map((path) => ({ path, content: readFileSync(join(root, path), "utf8") }))

export const codeTexts = (root: string): ReadonlyArray<Text> => read(root, code)

/** Every Markdown file. */
export const allDocumentTexts = (root: string): ReadonlyArray<Text> => read(root, documents)

/** Markdown that somebody wrote; the reference pages are made of docstrings. */
export const documentTexts = (root: string): ReadonlyArray<Text> =>
  allDocumentTexts(root).filter(({ path }) => !path.startsWith("docs/reference/"))

/** The line of an offset, counted from 1. */
export const lineOf = (content: string, offset: number): number => content.slice(0, offset).split("\n").length
