/**
 * Other names of a key, as annotations of its schema: aliases, which a file may use, and former names, which are refused with a hint.
 */
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"

interface OtherNames {
  readonly aliases?: ReadonlyArray<string>
  readonly formerNames?: ReadonlyArray<string>
}

/** A file may also write the key like this. */
export const alias =
  (...aliases: ReadonlyArray<string>) =>
  <S extends Schema.Top>(schema: S) =>
    schema.annotate({ aliases })

/** The key had this name once. */
export const renamedFrom =
  (...formerNames: ReadonlyArray<string>) =>
  <S extends Schema.Top>(schema: S) =>
    schema.annotate({ formerNames })

export const aliasesOf = (ast: SchemaAST.AST): ReadonlyArray<string> => otherNamesOf(ast).aliases ?? []

export const formerNamesOf = (ast: SchemaAST.AST): ReadonlyArray<string> => otherNamesOf(ast).formerNames ?? []

const otherNamesOf = (ast: SchemaAST.AST) => (SchemaAST.resolve(ast) ?? {}) as OtherNames
