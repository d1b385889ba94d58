/**
 * The public surface of a package: the modules that its `exports` open, what each of them exports, and the members of those.
 */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, posix } from "node:path"
import { children, docstringBefore, type Node, nameOf, readSource, type SourceFile } from "./sourceFile.ts"

export interface PublicPackage {
  /** Such as `@eventbus/core`. */
  readonly name: string
  /** Such as `packages/core`. */
  readonly folder: string
  /** Never published. */
  readonly isPrivate: boolean
  readonly modules: ReadonlyArray<PublicModule>
}

export interface PublicModule {
  /** Such as `Binding`. */
  readonly name: string
  /** How a user imports it. */
  readonly importedAs: string
  readonly file: SourceFile
  readonly exports: ReadonlyArray<Export>
}

/** Everything that a module exports under one name; a type and a value of one name are one export. */
export interface Export {
  readonly name: string
  readonly declarations: ReadonlyArray<Declaration>
  /** Docstring of the first declaration that has one. */
  readonly docstring: string | undefined
  readonly members: ReadonlyArray<Member>
}

export interface Declaration {
  readonly file: SourceFile
  /** The statement, with `export`. */
  readonly statement: Node
  /** The declared thing: a class, an interface, a type, a function, or one variable of the statement. */
  readonly node: Node
}

export interface Member {
  readonly name: string
  readonly file: SourceFile
  readonly node: Node
  readonly docstring: string | undefined
}

/** The packages that open modules to others, by folder. */
export const publicPackages = (root: string): ReadonlyArray<PublicPackage> =>
  globSync("packages/*/package.json", { cwd: root })
    .sort()
    .flatMap((manifest) => {
      const { name, exports, private: isPrivate = false } = JSON.parse(readFileSync(join(root, manifest), "utf8"))
      if (exports === undefined) return []
      const folder = dirname(manifest)
      const modules = publicFiles(root, folder, exports)
        .map((path) =>
          readModule(
            root,
            path,
            isInIndex(root, folder, path) ? undefined : specifierOf(name, folder, exports, path),
            name
          )
        )
        .filter((module) => module.exports.length > 0)
      return [{ name, folder, isPrivate, modules }]
    })

/** The files that the exports map of a package names, and those that its index passes on as namespaces; not the index itself. */
export const publicFiles = (root: string, folder: string, exports: Record<string, unknown>): ReadonlyArray<string> => {
  const named = Object.values(exports)
    .filter((target): target is string => typeof target === "string" && target.endsWith(".ts"))
    .flatMap((target) => globSync(posix.join(folder, target), { cwd: root }))
  const passedOn = named.flatMap((path) => namespaces(readSource(root, path)))
  return [...new Set([...named.filter((path) => namespaces(readSource(root, path)).length === 0), ...passedOn])].sort()
}

/** The files of `export * as Name from "./file.ts"`. */
const namespaces = (file: SourceFile): ReadonlyArray<string> =>
  file.body.flatMap((node) => {
    const isNamespace = node.type === "ExportAllDeclaration" && node.exported !== null
    return isNamespace ? [resolveImport(file.path, (node.source as Node).value as string)] : []
  })

/** A module of a sibling package, as `@eventbus/name/Module`. */
const ofSibling = /^@eventbus\/([^/]+)\/(.+)$/

/** The path of an import from the root of the tree: of a relative one, or of a module of a sibling package. */
export const resolveImport = (from: string, specifier: string): string => {
  const [, sibling, module] = ofSibling.exec(specifier) ?? []
  return sibling === undefined ? posix.join(posix.dirname(from), specifier) : `packages/${sibling}/src/${module}.ts`
}

/** The specifier of a module that the index does not pass on: the key of `exports` that opens it. */
const specifierOf = (packageName: string, folder: string, exports: Record<string, unknown>, path: string): string => {
  for (const [key, target] of Object.entries(exports)) {
    const [before, after = ""] = posix.join(folder, String(target)).split("*")
    if (path === before) return posix.join(packageName, key)
    if (String(target).includes("*") && path.startsWith(before!) && path.endsWith(after))
      return posix.join(packageName, key.replace("*", path.slice(before!.length, path.length - after.length)))
  }
  return packageName
}

const isInIndex = (root: string, folder: string, path: string): boolean =>
  namespaces(readSource(root, posix.join(folder, "src/index.ts"))).includes(path)

const readModule = (root: string, path: string, specifier: string | undefined, packageName: string): PublicModule => {
  const file = readSource(root, path)
  const name = posix.basename(path, ".ts")
  const importedAs =
    specifier === undefined ? `import { ${name} } from "${packageName}"` : `import * as ${name} from "${specifier}"`
  const byName = Map.groupBy(declarationsOf(root, file), ({ name }) => name)
  const exports = [...byName].map(([name, found]): Export => {
    const declarations = found.map(({ declaration }) => declaration)
    const docstrings = declarations.map(({ file, statement }) => docstringBefore(file, statement.start))
    return {
      name,
      declarations,
      docstring: docstrings.find((docstring) => docstring !== undefined),
      members: declarations.flatMap(membersOf)
    }
  })
  return { name, importedAs, file, exports }
}

interface Named {
  readonly name: string
  readonly declaration: Declaration
}

/** The exports of a file, wherever they are declared. */
const declarationsOf = (root: string, file: SourceFile): ReadonlyArray<Named> =>
  file.body.flatMap((statement): ReadonlyArray<Named> => {
    if (statement.type === "ExportAllDeclaration" && statement.exported === null) return fromFile(root, file, statement)
    if (statement.type !== "ExportNamedDeclaration") return []
    const declared = statement.declaration as Node | null
    if (declared !== null)
      return declarators(declared).map((node) => ({ name: nameOf(node) ?? "", declaration: { file, statement, node } }))
    const origin = statement.source === null ? localDeclarations(file) : fromFile(root, file, statement)
    return (statement.specifiers as ReadonlyArray<Node>).flatMap((specifier) =>
      origin
        .filter(({ name }) => name === (specifier.local as Node).name)
        .map(({ declaration }) => ({ name: String((specifier.exported as Node).name), declaration }))
    )
  })

const fromFile = (root: string, file: SourceFile, statement: Node): ReadonlyArray<Named> => {
  const path = resolveImport(file.path, (statement.source as Node).value as string)
  return existsSync(join(root, path)) ? declarationsOf(root, readSource(root, path)) : []
}

/** Declarations without `export`, which a list of names exports. */
const localDeclarations = (file: SourceFile): ReadonlyArray<Named> =>
  file.body.flatMap((statement) =>
    declarators(statement).map((node) => ({ name: nameOf(node) ?? "", declaration: { file, statement, node } }))
  )

const declarators = (declared: Node): ReadonlyArray<Node> =>
  declared.type === "VariableDeclaration"
    ? (declared.declarations as ReadonlyArray<Node>)
    : nameOf(declared) === undefined
      ? []
      : [declared]

const memberTypes = new Set(["TSPropertySignature", "TSMethodSignature", "PropertyDefinition", "MethodDefinition"])

/** Members of the interface, of the object types that a type or a service is made of, of the class, and the fields of its schema. */
const membersOf = ({ file, node }: Declaration): ReadonlyArray<Member> => {
  const roots =
    node.type === "VariableDeclarator" || node.type === "FunctionDeclaration" || node.type === "TSDeclareFunction"
      ? []
      : node.type === "ClassDeclaration"
        ? [node.superClass as Node | null, node.superTypeArguments as Node | null, node.body as Node]
        : [(node.body ?? node.typeAnnotation) as Node]
  return roots.filter((root) => root !== null && root !== undefined).flatMap((root) => membersBelow(file, root))
}

const membersBelow = (file: SourceFile, node: Node): ReadonlyArray<Member> => {
  // The parameters of a function type are its own; its docstring says what they are.
  if (node.type === "TSFunctionType" || node.type === "TSMethodSignature") return []
  if (node.type === "BlockStatement" || node.type === "ArrowFunctionExpression") return []
  return children(node).flatMap((child) => {
    const below = membersBelow(file, child)
    const name = nameOf(child)
    if (name === undefined || !isMember(child)) return below
    return [{ name, file, node: child, docstring: docstringBefore(file, child.start) }, ...below]
  })
}

/** A member that is `private`, or whose name begins with `#`. */
export const isPrivate = (member: Node): boolean =>
  member.accessibility === "private" || (member.key as Node | undefined)?.type === "PrivateIdentifier"

/** `_tag` only tells the alternatives of a type apart; an overriding member has the docstring of what it overrides. */
const isMember = (node: Node): boolean => {
  if (nameOf(node) === "_tag" || node.override === true || isPrivate(node)) return false
  if (node.kind === "constructor") return false
  return memberTypes.has(node.type) || (node.type === "Property" && node.kind === "init")
}
