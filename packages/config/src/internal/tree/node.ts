/**
 * A configuration as it is written: values with their location.
 */
import { Kinds } from "@eventbus/core"

/** Origin of values: a file, a variable or code. */
export interface Source {
  /** Path of the file, or another name of the source. */
  readonly name: string
  /** Content of the source; set when locations have a line and a column. */
  readonly text?: string
}

interface Sourced {
  readonly source: Source
  /** Offset into the source's text. */
  readonly offset: number
}

export interface Scalar extends Sourced {
  readonly _tag: "Scalar"
  readonly value: unknown
  /** The text before variables were replaced: only this may appear in a message. Such a text may also stand for a number or a boolean. */
  readonly template?: string
}

export interface List extends Sourced {
  readonly _tag: "List"
  readonly items: ReadonlyArray<Node>
}

export interface Entry {
  readonly key: string
  readonly offset: number
  readonly value: Node
  /** True for an entry from `<<`, which a key of the section itself overrides. */
  readonly merged?: boolean
}

/** Keys with values, in order. A key may occur twice. */
export interface Section extends Sourced {
  readonly _tag: "Section"
  readonly entries: ReadonlyArray<Entry>
}

export type Node = Scalar | List | Section

/** A file with line and column. */
export interface SourceLocation {
  readonly file: string
  readonly line?: number
  readonly column?: number
}

const lineStarts = new WeakMap<Source, ReadonlyArray<number>>()

/** The location of a value. Line and column count from 1. */
export const sourceLocation = ({ source, offset }: Sourced): SourceLocation => {
  if (source.text === undefined) return { file: source.name }
  let starts = lineStarts.get(source)
  if (starts === undefined) {
    starts = [0, ...Array.from(source.text.matchAll(/\r\n|\n|\r/g), (end) => end.index + end[0].length)]
    lineStarts.set(source, starts)
  }
  let low = 0
  let high = starts.length
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (starts[middle]! <= offset) low = middle
    else high = middle
  }
  return { file: source.name, line: low + 1, column: offset - starts[low]! + 1 }
}

export type Path = ReadonlyArray<string | number>

/** A path as a linked list, so that nothing is copied on the way down the tree. */
export interface KeyPath {
  readonly parent: KeyPath | undefined
  readonly key: string | number
}

export const pathOf = (keyPath: KeyPath | undefined): Path =>
  keyPath === undefined ? [] : [...pathOf(keyPath.parent), keyPath.key]

const plain = /^[A-Za-z_][\w-]*$/

/** Formats a path as `eventbus.bindings.orders.retry.tiers[0].delayMs`. A name with special characters is quoted: `bindings["a.b"]`. */
export const formatPath = (path: Path): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`
    if (!plain.test(key)) return `${text}[${JSON.stringify(key)}]`
    return text === "" ? key : `${text}.${key}`
  }, "")

/** The value of a key. Of duplicate keys, the last one counts. */
export const child = (node: Node | undefined, key: string | number): Node | undefined => {
  if (node?._tag === "List") return typeof key === "number" ? node.items[key] : undefined
  if (node?._tag === "Section") return node.entries.findLast((entry) => entry.key === key)?.value
  return undefined
}

const maxShown = 60

/** The parts of a value that a message may not show. */
export interface Hidden {
  /** Nothing of it. */
  readonly secret?: boolean | undefined
  /** A user and a password in front of an `@`. */
  readonly hasUser?: boolean | undefined
}

/** A value as text for a message, without the content of variables. */
export const show = (node: Node, { secret = false, hasUser = false }: Hidden = {}): string => {
  if (node._tag === "List") return node.items.length === 0 ? "an empty list" : "a list"
  if (node._tag === "Section") return "a section"
  const { value, template } = node
  if (secret) return template === undefined ? `a ${typeof value} (not shown)` : "the text of a variable (not shown)"
  if (template !== undefined) return template
  if (value === null || value === undefined) return "nothing"
  if (typeof value === "string") {
    const text = hasUser ? Kinds.withoutUser(value) : value
    return JSON.stringify(text.length > maxShown ? `${text.slice(0, maxShown)}…` : text)
  }
  return typeof value === "number" || typeof value === "boolean" || typeof value === "bigint"
    ? String(value)
    : `a ${typeof value}`
}
