/**
 * Environment variables as the top layer: `EVENTBUS_BINDINGS_ORDERS_GROUP_ID=billing` sets `eventbus.bindings.orders.groupId`.
 *
 * Names of bindings and clusters are written like keys: in upper case, with `_` for every character that is not a letter or a digit. A name that
 * exists in the tree is matched that way; any other name creates a new entry in kebab case. A list takes its entries separated by commas, or one by
 * one by index: `..._RETRY_TIERS_0_DELAY_MS`.
 */

import * as Shape from "../schema/shape.ts"
import type { Issues } from "../tree/issues.ts"
import * as Names from "../tree/names.ts"
import * as Node from "../tree/node.ts"
import { assign } from "../tree/overlay.ts"
import type { Variables } from "./variables.ts"

const prefix = "EVENTBUS_"

/** Lays the variables over the root. Their order does not matter. */
export const override = (
  root: Node.Node | undefined,
  shape: Shape.Struct,
  variables: Variables,
  issues: Issues
): Node.Node | undefined => {
  const sections = Array.from(Shape.select(shape.keys.get("eventbus")!.shape, "Struct")!.keys.keys(), Names.constant)
  const setBy = new Map<string, string>()
  let result = root
  for (const name of Array.from(variables.keys()).sort(inOrder)) {
    const rest = name.slice(prefix.length)
    // Other programs' variables may have the same prefix.
    if (!name.startsWith(prefix) || !sections.some((section) => rest === section || rest.startsWith(`${section}_`))) {
      continue
    }
    const source = { name: `variable ${name}` }
    const eventbus = [shape.keys.get("eventbus")!.shape, Node.child(result, "eventbus")] as const
    const path = find(rest, ...eventbus)
    if (path === undefined) {
      const renamed = find(rest, ...eventbus, withFormerSpellings)
      const [found, allowed] =
        renamed === undefined
          ? ["a variable that stands for no key", `a variable such as ${suggest(name)}`]
          : ["a variable whose key was renamed", `${nameOf(renamed.keys)}, its new name`]
      issues.add([name], found!, allowed!, { file: source.name })
      continue
    }
    const full = ["eventbus", ...path.keys]
    const text = Node.formatPath(full)
    const other = setBy.get(text)
    if (other !== undefined) {
      issues.add(full, `${name} beside ${other}`, "one variable for a key", { file: source.name })
      continue
    }
    setBy.set(text, name)
    result = assign(result, full, valueOf(variables.get(name)!, path.shape, name, source))
  }
  return result
}

/** Sorts by number, so that entry 10 of a list comes after entry 9. */
const inOrder = new Intl.Collator("en", { numeric: true }).compare

const suggest = (name: string): string =>
  name.includes("_CLUSTERS_") ? "EVENTBUS_CLUSTERS_DEFAULT_BROKERS" : "EVENTBUS_BINDINGS_ORDERS_GROUP_ID"

const valueOf = (text: string, shape: Shape.Shape, name: string, source: Node.Source): Node.Node => {
  const scalar = (value: string): Node.Scalar => ({
    ...{ _tag: "Scalar", source, offset: 0, value, template: `the text of ${name}` }
  })
  if (!Shape.isList(shape, text)) return scalar(text)
  const items = text.split(",").map((item) => item.trim())
  return { _tag: "List", source, offset: 0, items: items.filter((item) => item !== "").map(scalar) }
}

interface Found {
  readonly keys: Node.Path
  readonly shape: Shape.Shape
}

type Spellings = (struct: Shape.Struct) => Iterable<readonly [spelling: string, key: string]>

const currentSpellings: Spellings = ({ spellings }) => spellings

const withFormerSpellings: Spellings = ({ spellings, formerSpellings }) => [...spellings, ...formerSpellings]

/** The name of the variable for a key below `eventbus`. */
const nameOf = (keys: Node.Path): string => `${prefix}${keys.map((key) => Names.constant(String(key))).join("_")}`

/** The key behind the rest of a variable's name. */
const find = (
  rest: string,
  shape: Shape.Shape,
  node: Node.Node | undefined,
  spellingsOf = currentSpellings
): Found | undefined => {
  if (rest === "") return isValue(shape) ? { keys: [], shape } : undefined
  const within = (key: string | number, written: string, inner: Shape.Shape): Found | undefined => {
    if (rest !== written && !rest.startsWith(`${written}_`)) return undefined
    const found = find(rest.slice(written.length + 1), inner, Node.child(node, key), spellingsOf)
    return found && { keys: [key, ...found.keys], shape: found.shape }
  }
  const struct = Shape.select(shape, "Struct")
  for (const [spelling, key] of struct === undefined ? [] : spellingsOf(struct)) {
    const found = within(key, Names.constant(spelling), struct!.keys.get(key)!.shape)
    if (found !== undefined) return found
  }
  const list = Shape.select(shape, "List")
  const index = /^(\d{1,4})(?:_|$)/.exec(rest)?.[1]
  if (list !== undefined && index !== undefined) {
    const length = node?._tag === "List" ? node.items.length : 0
    return Number(index) <= length ? within(Number(index), index, list.item) : undefined
  }
  const dictionary = Shape.select(shape, "Dictionary")
  return dictionary && findByName(rest, dictionary, node, within)
}

/** The longest matching name that leads to a key. */
const findByName = (
  rest: string,
  { value }: Shape.Dictionary,
  node: Node.Node | undefined,
  within: (key: string, written: string, inner: Shape.Shape) => Found | undefined
): Found | undefined => {
  const names = node?._tag === "Section" ? node.entries.map(({ key }) => key) : []
  for (const name of names.toSorted((left, right) => right.length - left.length)) {
    const found = within(name, Names.constant(name), value)
    if (found !== undefined) return found
  }
  const words = rest.split("_")
  for (let count = 1; count < words.length; count++) {
    const written = words.slice(0, count)
    const found = within(written.join("-").toLowerCase(), written.join("_"), value)
    if (found !== undefined) return found
  }
  return undefined
}

const isValue = (shape: Shape.Shape): boolean =>
  Shape.select(shape, "Leaf") !== undefined || Shape.select(shape, "List") !== undefined
