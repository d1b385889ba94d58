/**
 * What a schema expects where, as far as reading a file needs it: which keys, which spellings of them, and what a value may be.
 */
import { SchemaAST } from "effect"
import * as Names from "../tree/names.ts"
import type { Facts } from "./leaves.ts"
import * as OtherNames from "./otherNames.ts"

export interface Leaf {
  readonly _tag: "Leaf"
  readonly facts: Facts
  readonly takesNumber: boolean
  readonly takesBoolean: boolean
  /** The texts of an enumeration. */
  readonly texts: ReadonlyArray<string> | undefined
}

export interface Struct {
  readonly _tag: "Struct"
  readonly description: string
  readonly keys: ReadonlyMap<string, Key>
  /** Every way to write a key, its aliases included, to the key. */
  readonly spellings: ReadonlyMap<string, string>
  /** Every way to write a former name of a key, to the key. */
  readonly formerSpellings: ReadonlyMap<string, string>
}

export interface Key {
  readonly shape: Shape
  readonly required: boolean
}

/** A map whose keys are the user's. */
export interface Dictionary {
  readonly _tag: "Dictionary"
  readonly description: string
  readonly fallback: unknown
  readonly value: Shape
}

export interface List {
  readonly _tag: "List"
  readonly description: string
  readonly fallback: unknown
  readonly item: Shape
}

/** A value of one kind or another: at most one of each. */
export interface Either {
  readonly _tag: "Either"
  readonly description: string
  readonly options: ReadonlyArray<Shape>
}

export type Shape = Leaf | Struct | Dictionary | List | Either

export const make = (ast: SchemaAST.AST): Shape => {
  const facts = (SchemaAST.resolve(ast) ?? {}) as Partial<Facts> & { readonly texts?: ReadonlyArray<string> }
  const { description = "", fallback } = facts
  if (facts.allowed !== undefined) {
    const types = [facts.json?.["type"]].flat()
    return {
      _tag: "Leaf",
      facts: facts as Facts,
      takesNumber: types.includes("integer") || types.includes("number"),
      takesBoolean: types.includes("boolean"),
      texts: facts.texts
    }
  }
  return collection(ast._tag === "Declaration" ? behindDefault(ast) : ast, description, fallback)
}

/** A default is a type that takes anything in front of the schema. */
const behindDefault = (ast: SchemaAST.Declaration): SchemaAST.AST => ast.encoding?.[0]?.to ?? ast

const collection = (ast: SchemaAST.AST, description: string, fallback: unknown): Exclude<Shape, Leaf> => {
  if (ast._tag === "Arrays") return { _tag: "List", description, fallback, item: make(ast.rest[0] ?? ast.elements[0]!) }
  if (ast._tag === "Union") return { _tag: "Either", description, options: ast.types.map(make) }
  if (ast._tag !== "Objects") throw new Error(`A configuration has no ${ast._tag}`)
  const [anyKey] = ast.indexSignatures
  if (anyKey !== undefined) return { _tag: "Dictionary", description, fallback, value: make(anyKey.type) }
  const keys = new Map(
    ast.propertySignatures.map(({ name, type }) => [
      String(name),
      { shape: make(type), required: !SchemaAST.isOptional(SchemaAST.toEncoded(type)) }
    ])
  )
  const named = (names: (type: SchemaAST.AST, key: string) => ReadonlyArray<string>) =>
    new Map(
      ast.propertySignatures.flatMap(({ name, type }) => {
        const key = String(name)
        return names(type, key)
          .flatMap(Names.spellings)
          .map((spelling) => [spelling, key] as const)
      })
    )
  return {
    _tag: "Struct",
    description,
    keys,
    spellings: named((type, key) => [key, ...OtherNames.aliasesOf(type)]),
    formerSpellings: named(OtherNames.formerNamesOf)
  }
}

/** The one of several that a value of this kind is read as. */
export const select = <T extends Shape["_tag"]>(
  shape: Shape,
  tag: T
): Extract<Shape, { readonly _tag: T }> | undefined => {
  const found = shape._tag === "Either" ? shape.options.find((option) => option._tag === tag) : shape
  return found?._tag === tag ? (found as Extract<Shape, { readonly _tag: T }>) : undefined
}

export const description = (shape: Shape): string =>
  shape._tag === "Leaf" ? shape.facts.description : shape.description

/** The shape of what is below a key. */
export const inside = (shape: Shape, key: string | number): Shape =>
  typeof key === "number"
    ? (select(shape, "List")?.item ?? shape)
    : (select(shape, "Struct")?.keys.get(key)?.shape ?? select(shape, "Dictionary")?.value ?? shape)

/** The smallest part that holds what is at the path and may be absent; the first key of the path when there is none. */
export const optionalPart = (shape: Shape, path: ReadonlyArray<string | number>): ReadonlyArray<string | number> => {
  let at = shape
  let length = 1
  for (const [index, key] of path.entries()) {
    const isOptional = typeof key === "string" && !select(at, "Struct")?.keys.get(key)?.required
    if (isOptional) length = index + 1
    at = inside(at, key)
  }
  return path.slice(0, length)
}

/** What an absent key means, where it is a single value, a list or a map. */
export const fallback = (shape: Shape): unknown => {
  if (shape._tag === "Leaf") return shape.facts.fallback
  return shape._tag === "List" || shape._tag === "Dictionary" ? shape.fallback : undefined
}

/** What is allowed here, for a message. */
export const allowed = (shape: Shape): string => {
  switch (shape._tag) {
    case "Leaf":
      return shape.facts.allowed
    case "Struct":
      return `a section with keys out of ${Array.from(shape.keys.keys()).join(", ")}`
    case "Dictionary":
      return "a section of names"
    case "List":
      return `a list, each entry ${allowed(shape.item)}`
    case "Either":
      return shape.options.map(allowed).join("; or ")
  }
}
