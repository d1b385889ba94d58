/**
 * A configuration as it was written: values with the place that they come from.
 */

/** Where values come from: a file, a variable or code. */
export interface Source {
  /** The file's path, or another name of it. */
  readonly name: string
  /** Set when places have a line and a column. */
  readonly text?: string
}

interface Placed {
  readonly source: Source
  /** Into the source's text. */
  readonly offset: number
}

export interface Scalar extends Placed {
  readonly _tag: "Scalar"
  readonly value: unknown
  /** As it was written, when the value came from variables: what a message may show of it. Such text may also stand for a number or true and false. */
  readonly template?: string
}

export interface List extends Placed {
  readonly _tag: "List"
  readonly items: ReadonlyArray<Node>
}

export interface Entry {
  readonly key: string
  readonly offset: number
  readonly value: Node
  /** It came in by `<<` and gives way to a key that was written here. */
  readonly merged?: boolean
}

/** Keys with values, in order; a key may occur twice. */
export interface Section extends Placed {
  readonly _tag: "Section"
  readonly entries: ReadonlyArray<Entry>
}

export type Node = Scalar | List | Section

export interface Place {
  readonly file: string
  readonly line?: number
  readonly column?: number
}

const lineStarts = new WeakMap<Source, ReadonlyArray<number>>()

/** Line and column count from 1. */
export const place = ({ source, offset }: Placed): Place => {
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

/** A path as it is walked: nothing is copied on the way down. */
export interface Trail {
  readonly above: Trail | undefined
  readonly key: string | number
}

export const pathOf = (trail: Trail | undefined): Path =>
  trail === undefined ? [] : [...pathOf(trail.above), trail.key]

const plain = /^[A-Za-z_][\w-]*$/

/** `eventbus.bindings.orders.retry.tiers[0].delayMs`; a name that is not plain is quoted: `bindings["a.b"]`. */
export const formatPath = (path: Path): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`
    if (!plain.test(key)) return `${text}[${JSON.stringify(key)}]`
    return text === "" ? key : `${text}.${key}`
  }, "")

/** The value of a key; the last one written wins. */
export const child = (node: Node | undefined, key: string | number): Node | undefined => {
  if (node?._tag === "List") return typeof key === "number" ? node.items[key] : undefined
  if (node?._tag === "Section") return node.entries.findLast((entry) => entry.key === key)?.value
  return undefined
}

const maxShown = 60

/** What was found, for a message. Never the text of a variable. */
export const show = (node: Node, secret = false): string => {
  if (node._tag === "List") return node.items.length === 0 ? "an empty list" : "a list"
  if (node._tag === "Section") return "a section"
  const { value, template } = node
  if (secret) return template === undefined ? `a ${typeof value} (not shown)` : "the text of a variable (not shown)"
  if (template !== undefined) return template
  if (value === null || value === undefined) return "nothing"
  if (typeof value === "string") {
    return JSON.stringify(value.length > maxShown ? `${value.slice(0, maxShown)}…` : value)
  }
  return typeof value === "number" || typeof value === "boolean" || typeof value === "bigint"
    ? String(value)
    : `a ${typeof value}`
}
