/**
 * No sentence of a document or a comment begins with "Who", "What" or "Whoever" unless it is a question: such a sentence hides who acts.
 */
import type { Check, Violation } from "./report.ts"
import { readSource } from "./sourceFile.ts"
import { codeTexts, documentTexts, lineOf, type Text } from "./texts.ts"

interface Passage {
  readonly text: string
  /** Offset of the passage in its file. */
  readonly at: number
}

export const sentences: Check = (root) => {
  const documents = documentTexts(root).filter(({ path }) => !path.startsWith("docs/rules/"))
  const code = codeTexts(root).filter(({ path }) => path.endsWith(".ts"))
  const passages = [
    ...documents.map((text) => ({ text, passages: prose(text) })),
    ...code.map((text) => ({ text, passages: comments(root, text) }))
  ]
  return {
    violations: passages.flatMap(({ text, passages }) => passages.flatMap((passage) => hiddenSubjects(text, passage))),
    summary: `${documents.length} documents, and the comments of ${code.length} files`
  }
}

/** Headings ask questions without a mark; code blocks are no prose. */
const prose = ({ content }: Text): ReadonlyArray<Passage> => [
  { text: blank(content, /^(```|~~~)[\s\S]*?^\1|`[^`\n]*`|^#.*$/gm), at: 0 }
]

const comments = (root: string, { path }: Text): ReadonlyArray<Passage> =>
  readSource(root, path).comments.map(({ type, value, start }) => ({
    // Stars at the beginning of lines become spaces, so that offsets stay.
    text: type === "Block" ? value.replace(/^\*|^\s*\*/gm, (stars) => " ".repeat(stars.length)) : value,
    at: start + 2
  }))

const blank = (text: string, pattern: RegExp): string => text.replace(pattern, (found) => found.replace(/[^\n]/g, "x"))

/** The word at the beginning of a text, a line of a list, a table cell, or after the end of a sentence. */
const beginning =
  /(?:^\s*|[.!?:]\s+|\n\s*\n\s*|\n\s*[-*]\s+|\|\s+|\*\*\s*)(Who|What|Whoever|Whatever)\s[^.!?|]*(?:[.!?|]|$)/g

const hiddenSubjects = ({ path, content }: Text, { text, at }: Passage): ReadonlyArray<Violation> =>
  [...text.matchAll(beginning)]
    .filter(([sentence]) => !sentence.endsWith("?"))
    .map(({ 0: sentence, index }) => ({
      file: path,
      line: lineOf(content, at + index + sentence.search(/Wh/)),
      message: `begins with its object: "${sentence.replace(/^\W+/, "").replace(/\s+/g, " ").trim().slice(0, 60)}"`
    }))
