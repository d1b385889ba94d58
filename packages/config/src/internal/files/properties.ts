/**
 * Java's `.properties`: lines of `key=value`, `key: value` or `key value`, comments after `#` and `!`, lines that continue behind a backslash, and escapes such as `\u00e4`. Dots in
 * a key open sections.
 */
import * as Node from "../tree/node.ts"

interface Refused {
  readonly found: string
  readonly allowed: string
  readonly offset: number
}

/** A character of a logical line, and where it stands in the file. An escaped character never separates. */
interface Letter {
  readonly char: string
  readonly offset: number
  readonly isEscaped: boolean
}

/** The tree of a text. Refused are a broken escape, and a value beside keys below it; all of them. A key that occurs twice stays twice. */
export const parse = (
  source: Required<Node.Source>
): { readonly node: Node.Section; readonly refused: ReadonlyArray<Refused> } => {
  const refused: Array<Refused> = []
  const root: Branch = { offset: 0, entries: [] }
  for (const line of logicalLines(source.text, refused)) {
    const end = line.findIndex(({ char, isEscaped }) => !isEscaped && /[=:\s]/.test(char))
    const key = textOf(line.slice(0, end === -1 ? line.length : end))
    const offset = line[0]!.offset
    put(root, key.split("."), { text: valueOf(line, end), offset }, refused)
  }
  return { node: sectionOf(root, source), refused }
}

/** Behind the key: blanks, at most one `=` or `:`, blanks, and the value. */
const valueOf = (line: ReadonlyArray<Letter>, end: number): string => {
  if (end === -1) return ""
  const isBlank = (at: number) => line[at] !== undefined && !line[at].isEscaped && /\s/.test(line[at].char)
  let start = end
  while (isBlank(start)) start++
  const separator = line[start]
  if (separator !== undefined && !separator.isEscaped && /[=:]/.test(separator.char)) start++
  while (isBlank(start)) start++
  return textOf(line.slice(start))
}

const textOf = (letters: ReadonlyArray<Letter>): string => letters.map(({ char }) => char).join("")

const escapes: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", f: "\f" }

/** Lines without blanks in front, comments and empty lines, those that continue as one. */
const logicalLines = (text: string, refused: Array<Refused>): ReadonlyArray<ReadonlyArray<Letter>> => {
  const lines: Array<ReadonlyArray<Letter>> = []
  let current: Array<Letter> | undefined
  for (const { index: start, 0: line } of text.matchAll(/(?<=^|\r\n|\r|\n)(?<!\r(?=\n))[^\r\n]*/g)) {
    const blanks = /^[ \t\f]*/.exec(line)![0].length
    const isComment = current === undefined && /^[#!]/.test(line.slice(blanks))
    if (isComment || (current === undefined && blanks === line.length)) continue
    const continues = /(?:^|[^\\])(?:\\\\)*\\$/.test(line)
    const content = line.slice(blanks, continues ? -1 : undefined)
    const letters: Array<Letter> = current ?? []
    letters.push(...unescaped(content, start + blanks, refused))
    current = continues ? letters : undefined
    if (!continues && letters.length > 0) lines.push(letters)
  }
  if (current !== undefined && current.length > 0) lines.push(current)
  return lines
}

const unescaped = (content: string, start: number, refused: Array<Refused>): ReadonlyArray<Letter> => {
  const letters: Array<Letter> = []
  for (let at = 0; at < content.length; at++) {
    const offset = start + at
    if (content[at] !== "\\") {
      letters.push({ char: content[at]!, offset, isEscaped: false })
      continue
    }
    const escaped = content[++at] ?? ""
    if (escaped !== "u") {
      letters.push({ char: escapes[escaped] ?? escaped, offset, isEscaped: true })
      continue
    }
    const digits = content.slice(at + 1, at + 5)
    if (/^[0-9a-fA-F]{4}$/.test(digits)) {
      letters.push({ char: String.fromCharCode(Number.parseInt(digits, 16)), offset, isEscaped: true })
      at += 4
    } else {
      refused.push({
        found: `the escape ${JSON.stringify(`\\u${digits}`)}`,
        allowed: "\\u and four hexadecimal digits",
        offset
      })
    }
  }
  return letters
}

/** A section while it is built. */
interface Branch {
  readonly offset: number
  entries: Array<{ readonly key: string; readonly offset: number; readonly value: Branch | string }>
}

const put = (
  root: Branch,
  path: ReadonlyArray<string>,
  { text, offset }: { readonly text: string; readonly offset: number },
  refused: Array<Refused>
): void => {
  const clash = (key: string) =>
    refused.push({ found: `the key ${key} with a value and with keys below it`, allowed: "one of the two", offset })
  let branch = root
  for (const [index, key] of path.entries()) {
    const isLast = index === path.length - 1
    const known = branch.entries.find((entry) => entry.key === key)
    const isBranch = known !== undefined && typeof known.value !== "string"
    if (known !== undefined && isBranch === isLast) clash(path.slice(0, index + 1).join("."))
    if (isLast) {
      if (!isBranch) branch.entries.push({ key, offset, value: text })
      return
    }
    const below: Branch = known !== undefined && typeof known.value !== "string" ? known.value : { offset, entries: [] }
    if (!isBranch)
      branch.entries = [...branch.entries.filter((entry) => entry.key !== key), { key, offset, value: below }]
    branch = below
  }
}

const sectionOf = ({ offset, entries }: Branch, source: Node.Source): Node.Section => ({
  ...{ _tag: "Section", source, offset },
  entries: entries.map(({ key, offset: at, value }) => ({
    ...{ key, offset: at },
    value: typeof value === "string" ? { _tag: "Scalar", source, offset: at, value } : sectionOf(value, source)
  }))
})

/** Marks every text as one that may stand for a number, a boolean or a list: this format has nothing but texts. Messages show no user in front of an `@`. */
export const asTexts = (node: Node.Node): Node.Node => {
  if (node._tag === "List") return { ...node, items: node.items.map(asTexts) }
  if (node._tag === "Section") {
    return { ...node, entries: node.entries.map((entry) => ({ ...entry, value: asTexts(entry.value) })) }
  }
  return typeof node.value === "string" && node.template === undefined
    ? { ...node, template: Node.show(node, { hasUser: true }) }
    : node
}
