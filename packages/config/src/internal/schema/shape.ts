/**
 * The structure of a schema as far as reading a file needs it: keys, their spellings, and the kinds of values.
 */
import * as SchemaAST from "effect/SchemaAST"
import * as Names from "../tree/names.ts"
import type { SettingInfo } from "./leaves.ts"
import * as OtherNames from "./otherNames.ts"

export interface Leaf {
  readonly _tag: "Leaf"
  readonly info: SettingInfo
  readonly takesNumber: boolean
  readonly takesBoolean: boolean
  /** The texts of an enumeration. */
  readonly texts: ReadonlyArray<string> | undefined
}

export interface Struct {
  readonly _tag: "Struct"
  readonly description: string
  readonly keys: ReadonlyMap<string, Key>
  /** Maps every spelling of a key, its aliases included, to the key. */
  readonly spellings: ReadonlyMap<string, string>
  /** Maps every spelling of a former name to the key. */
  readonly formerSpellings: ReadonlyMap<string, string>
}

export interface Key {
  readonly shape: Shape
  readonly required: boolean
}

/** A section whose keys are names of the user's choice. */
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

/** A value of one of several kinds, at most one option for each kind. */
export interface Either {
  readonly _tag: "Either"
  readonly description: string
  readonly options: ReadonlyArray<Shape>
}

export type Shape = Leaf | Struct | Dictionary | List | Either

export const make = (ast: SchemaAST.AST): Shape => {
  const info = (SchemaAST.resolve(ast) ?? {}) as Partial<SettingInfo> & { readonly texts?: ReadonlyArray<string> }
  const { description = "", fallback } = info
  if (info.allowed !== undefined) {
    const types = [info.json?.["type"]].flat()
    return {
      _tag: "Leaf",
      info: info as SettingInfo,
      takesNumber: types.includes("integer") || types.includes("number"),
      takesBoolean: types.includes("boolean"),
      texts: info.texts
    }
  }
  return collection(ast._tag === "Declaration" ? behindDefault(ast) : ast, description, fallback)
}

/** The schema behind a default: `withDefault` puts a declaration that accepts anything in front of it. */
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

/** The shape of one kind: the shape itself, or the option of that kind. */
export const select = <T extends Shape["_tag"]>(
  shape: Shape,
  tag: T
): Extract<Shape, { readonly _tag: T }> | undefined => {
  const found = shape._tag === "Either" ? shape.options.find((option) => option._tag === tag) : shape
  return found?._tag === tag ? (found as Extract<Shape, { readonly _tag: T }>) : undefined
}

/** Whether the text of a variable is a list with commas, where the shape takes one. */
export const isList = (shape: Shape, text: string): boolean => {
  if (select(shape, "List") === undefined) return false
  const leaf = select(shape, "Leaf")
  return leaf === undefined || (leaf.info.hasNoComma === true && text.includes(","))
}

export const description = (shape: Shape): string =>
  shape._tag === "Leaf" ? shape.info.description : shape.description

/** The shape below a key. */
export const inside = (shape: Shape, key: string | number): Shape =>
  typeof key === "number"
    ? (select(shape, "List")?.item ?? shape)
    : (select(shape, "Struct")?.keys.get(key)?.shape ?? select(shape, "Dictionary")?.value ?? shape)

/** The smallest optional part that contains the path; the first key of the path when every part is required. */
export const optionalPart = (shape: Shape, path: ReadonlyArray<string | number>): ReadonlyArray<string | number> => {
  let current = shape
  let length = 1
  for (const [index, key] of path.entries()) {
    const isOptional = typeof key === "string" && !select(current, "Struct")?.keys.get(key)?.required
    if (isOptional) length = index + 1
    current = inside(current, key)
  }
  return path.slice(0, length)
}

/** Whether a value of the shape may have secrets in it. */
export const hasSecrets = (shape: Shape): boolean => {
  switch (shape._tag) {
    case "Leaf":
      return shape.info.secret === true
    case "Struct":
      return Array.from(shape.keys.values()).some((key) => hasSecrets(key.shape))
    case "Dictionary":
      return hasSecrets(shape.value)
    case "List":
      return hasSecrets(shape.item)
    case "Either":
      return shape.options.some(hasSecrets)
  }
}

/** The default of a single value, a list or a map. */
export const fallback = (shape: Shape): unknown => {
  if (shape._tag === "Leaf") return shape.info.fallback
  return shape._tag === "List" || shape._tag === "Dictionary" ? shape.fallback : undefined
}

/** The allowed values, for a message. */
export const allowed = (shape: Shape): string => {
  switch (shape._tag) {
    case "Leaf":
      return shape.info.allowed
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
