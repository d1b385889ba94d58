/**
 * Parses YAML 1.2 and JSON into nodes. Time and memory are bounded for any text: nesting is limited, and aliases are not copied.
 */
import {
  type AliasEvent,
  CORE_SCHEMA,
  EVENT_ID,
  type Event,
  getScalarValue,
  type MappingEvent,
  parseEvents,
  SCALAR_STYLE,
  type ScalarEvent,
  type SequenceEvent,
  YAMLException
} from "js-yaml"
import type * as Node from "../tree/node.ts"

/** Limit of the values in a file, those behind aliases included. It stops a file whose aliases expand to millions of values. */
const maxValues = 200_000
const maxDepth = 64

/** The reason why a text is not a configuration, with its offset. */
export interface Refused {
  readonly found: string
  readonly allowed: string
  readonly offset: number
}

class Refusal extends Error {
  readonly refused: Refused
  constructor(found: string, allowed: string, offset: number) {
    super(found)
    this.refused = { found, allowed, offset }
  }
}

export type Parsed = { readonly node: Node.Node } | { readonly refused: Refused }

export const parse = (source: Node.Source & { readonly text: string }): Parsed => {
  try {
    return { node: build(parseEvents(source.text, { maxDepth }), source) }
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown
    if (!(thrown instanceof YAMLException)) throw thrown
    // The text behind a colon or in quotes comes from the file and may be a secret.
    const found = thrown.reason.replace(/: .*$|"[^"]*"/s, "")
    return { refused: { found, allowed: "well-formed YAML", offset: thrown.mark?.position ?? 0 } }
  }
}

/** A list or section whose end has not come yet. */
interface OpenCollection {
  readonly tag: "List" | "Section"
  readonly offset: number
  readonly anchor: string | undefined
  readonly items: Array<Node.Node>
  /** Set while a key waits for its value. */
  key: { readonly name: string; readonly offset: number } | undefined
  readonly entries: Array<Node.Entry>
  /** Number of values inside, those behind aliases included. */
  size: number
}

const build = (events: ReadonlyArray<Event>, source: Node.Source & { readonly text: string }): Node.Node => {
  const builder = new Builder(source)
  for (const event of events) builder.take(event)
  if (builder.root === undefined) throw new Refusal("an empty file", "a section named eventbus", 0)
  return builder.root
}

class Builder {
  root: Node.Node | undefined
  readonly #source: Node.Source & { readonly text: string }
  readonly #open: Array<OpenCollection> = []
  /** Undefined while the anchored node is incomplete. */
  readonly #anchors = new Map<string, Node.Node | undefined>()
  readonly #sizes = new Map<Node.Node, number>()
  #documents = 0

  constructor(source: Node.Source & { readonly text: string }) {
    this.#source = source
  }

  take(event: Event): void {
    switch (event.type) {
      case EVENT_ID.DOCUMENT:
        if (++this.#documents > 1) throw new Refusal("a second document", "one document in a file", 0)
        break
      case EVENT_ID.MAPPING:
      case EVENT_ID.SEQUENCE:
        this.#begin(event)
        break
      case EVENT_ID.SCALAR:
        this.#scalar(event)
        break
      case EVENT_ID.ALIAS:
        this.#alias(event)
        break
      case EVENT_ID.POP:
        this.#end()
        break
    }
  }

  #begin(event: MappingEvent | SequenceEvent): void {
    const anchor = this.#anchorOf(event)
    if (anchor !== undefined) this.#anchors.set(anchor, undefined)
    const tag = event.type === EVENT_ID.MAPPING ? "Section" : "List"
    this.#open.push({ tag, offset: event.start, anchor, items: [], key: undefined, entries: [], size: 1 })
  }

  #end(): void {
    const open = this.#open.pop()
    // This is the end of the document.
    if (open === undefined) return
    const { offset, items, size, anchor } = open
    const source = this.#source
    const node: Node.Node =
      open.tag === "List"
        ? { _tag: "List", source, offset, items }
        : { _tag: "Section", source, offset, entries: mergeKeys(open.entries) }
    if (anchor !== undefined) {
      this.#anchors.set(anchor, node)
      this.#sizes.set(node, size)
    }
    this.#add(node, size)
  }

  #scalar(event: ScalarEvent): void {
    const anchor = this.#anchorOf(event)
    const text = getScalarValue(this.#source.text, event)
    // An absent value has the location of its key.
    const quote = event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED ? 1 : 0
    const offset = event.valueStart >= 0 ? event.valueStart - quote : (this.#open.at(-1)?.key?.offset ?? 0)
    const isPlain = event.style === SCALAR_STYLE.PLAIN && event.tagStart < 0
    const value = isPlain ? CORE_SCHEMA.resolveImplicitScalarTag(text).value : text
    const node: Node.Scalar = { _tag: "Scalar", source: this.#source, offset, value }
    if (anchor !== undefined) this.#anchors.set(anchor, node)
    this.#add(node, 1, text)
  }

  #alias(event: AliasEvent): void {
    const name = this.#source.text.slice(event.anchorStart, event.anchorEnd)
    const node = this.#anchors.get(name)
    if (node === undefined) {
      const isOpen = this.#anchors.has(name)
      throw new Refusal(
        isOpen ? "an alias of a value that contains it" : "an alias without an anchor in front of it",
        "an alias (*name) of a value that is complete, or text in quotes",
        event.anchorStart
      )
    }
    this.#add(node, this.#sizes.get(node) ?? 1)
  }

  #add(node: Node.Node, size: number, keyText?: string): void {
    const parent = this.#open.at(-1)
    if (parent === undefined) {
      this.root ??= node
      return
    }
    parent.size += size
    if (parent.size > maxValues) {
      throw new Refusal(
        `more than ${maxValues} values, those behind aliases included`,
        `at most ${maxValues}`,
        node.offset
      )
    }
    if (parent.tag === "List") {
      parent.items.push(node)
    } else if (parent.key === undefined) {
      parent.key = { name: keyOf(node, keyText), offset: node.offset }
    } else {
      const { name, offset } = parent.key
      parent.entries.push({ key: name, offset, value: node })
      parent.key = undefined
    }
  }

  #anchorOf(event: MappingEvent | SequenceEvent | ScalarEvent): string | undefined {
    const text = this.#source.text
    if (event.tagStart >= 0 && text.slice(event.tagStart, event.tagEnd) !== "!!str") {
      throw new Refusal("a tag", "a value without a tag", event.tagStart)
    }
    return event.anchorStart < 0 ? undefined : text.slice(event.anchorStart, event.anchorEnd)
  }
}

/** The key as it is written: `1`, `true` and `null` are names, too. */
const keyOf = (node: Node.Node, text: string | undefined): string => {
  if (node._tag !== "Scalar") throw new Refusal("a key that is a collection", "a text as key", node.offset)
  const key = text ?? String(node.value)
  if (key === "__proto__") throw new Refusal("the key __proto__", "another name", node.offset)
  return key
}

/** Applies `<<: *anchor`, or a list of anchors: adds the keys that the section does not have. */
const mergeKeys = (entries: ReadonlyArray<Node.Entry>): ReadonlyArray<Node.Entry> => {
  if (!entries.some(({ key }) => key === "<<")) return entries
  const own = entries.filter(({ key }) => key !== "<<")
  const taken = new Set(own.map(({ key }) => key))
  const merged = entries
    .filter(({ key }) => key === "<<")
    .flatMap(({ value, offset }) =>
      (value._tag === "List" ? value.items : [value]).flatMap((part) => {
        if (part._tag !== "Section") throw new Refusal("a merge of something else", "<<: *anchor of a section", offset)
        return part.entries
      })
    )
    .filter(({ key }) => !taken.has(key) && taken.add(key))
  return [...own, ...merged.map((entry) => ({ ...entry, merged: true }))]
}
