/**
 * An export of an internal module is used by another file, and by more than tests. An error class is raised somewhere.
 *
 * Public modules may export what nothing in this tree uses: their users are elsewhere.
 */
import { existsSync, globSync } from "node:fs"
import { join } from "node:path"
import type { Check, Violation } from "./report.ts"
import { type Node, nameOf, readSource, type SourceFile, walk } from "./sourceFile.ts"
import { publicPackages, resolveImport } from "./surface.ts"

const files = ["packages/*/{src,test}/**/*.ts", "test/**/*.ts", "scripts/**/*.ts", "vitest.config.ts"]
const isIndex = (path: string): boolean => path.endsWith("/src/index.ts")
/** Programs that show something to a reader: they declare what a user would. */
const isExample = (path: string): boolean => path.startsWith("packages/examples/")
const isTest = (path: string): boolean => path.startsWith("test/") || path.includes("/test/")

/** Modules that a person or a process starts; the build reads nothing from them. */
const isProgram = (file: SourceFile): boolean => file.module.staticExports.length === 0

/** Errors that code of users raises, with where. */
const raisedByUsers = new Map([
  ["WriteRefused", "a `beforeWrite` hook"],
  ["Skip", "a function of `transforms`"]
])

export const unusedExports: Check = (root) => {
  const sources = globSync(files, { cwd: root })
    .filter((path) => !path.startsWith("test/packaging/consumer/"))
    .sort()
    .map((path) => readSource(root, path))
  const open = new Set(publicPackages(root).flatMap(({ modules }) => modules.map(({ file }) => file.path)))
  const isClosed = ({ path }: SourceFile) =>
    path.includes("/src/") && !isIndex(path) && !isExample(path) && !open.has(path)
  const uses = usesOf(root, sources)
  const closed = sources.filter((file) => isClosed(file) && !isProgram(file))
  const exported = closed.flatMap((file) => exportNames(file).map((name) => ({ file, name })))
  const unused = exported.flatMap(({ file, name }) => {
    const message = faultOf(file, name, uses.get(file.path)?.get(name) ?? [])
    return message === undefined ? [] : [violationAt(file, name, message)]
  })
  const errors = errorClasses(sources)
  const raised = raisedNames(sources)
  const neverRaised = errors
    .filter(({ name }) => !raised.has(name) && !raisedByUsers.has(name))
    .map(({ file, name }) => violationAt(file, name, `nothing raises ${name}`))
  return {
    violations: [...unused, ...neverRaised],
    summary: `${exported.length} exports of ${closed.length} closed modules, ${errors.length} error classes`
  }
}

/** Which files use an export: file of the export, its name, the files that use it. */
type Uses = Map<string, Map<string, Array<string>>>

const usesOf = (root: string, sources: ReadonlyArray<SourceFile>): Uses => {
  const uses: Uses = new Map()
  const add = (target: string, name: string, user: string) => {
    const names = uses.get(target) ?? new Map<string, Array<string>>()
    uses.set(target, names)
    names.set(name, [...(names.get(name) ?? []), user])
  }
  const byPath = new Map(sources.map((file) => [file.path, file]))
  const addAll = (target: string, user: string) => {
    for (const name of byPath.has(target) ? exportNames(byPath.get(target)!) : []) add(target, name, user)
  }
  for (const file of sources) {
    const members = membersByNamespace(file)
    for (const { moduleRequest, entries } of file.module.staticImports) {
      if (!moduleRequest.value.startsWith(".")) continue
      const target = resolveImport(file.path, moduleRequest.value)
      for (const { importName, localName } of entries) {
        if (importName.kind === "Name") add(target, importName.name!, file.path)
        else for (const name of members.get(localName.value) ?? []) add(target, name, file.path)
        if (importName.kind === "NamespaceObject" && members.get(localName.value) === undefined)
          addAll(target, file.path)
      }
    }
    for (const { moduleRequest, importName } of file.module.staticExports.flatMap(({ entries }) => entries)) {
      if (moduleRequest === null || !moduleRequest.value.startsWith(".")) continue
      const target = resolveImport(file.path, moduleRequest.value)
      if (importName.kind === "Name") add(target, importName.name!, file.path)
      else addAll(target, file.path)
    }
    for (const path of namedPaths(root, file)) addAll(path, file.path)
  }
  return uses
}

/** Files that a module names in a string: dynamic imports, and `new URL("file.ts", import.meta.url)`. */
const namedPaths = (root: string, file: SourceFile): ReadonlyArray<string> => {
  const paths = [...file.text.matchAll(/["'`](\.{1,2}\/[\w./-]+\.ts)["'`]/g)].map(([, path]) =>
    resolveImport(file.path, path!)
  )
  const imported = new Set(
    [...file.module.staticImports, ...file.module.staticExports.flatMap(({ entries }) => entries)].flatMap(
      ({ moduleRequest }) => (moduleRequest === null ? [] : [resolveImport(file.path, moduleRequest.value)])
    )
  )
  return paths.filter((path) => !imported.has(path) && existsSync(join(root, path)))
}

/**
 * The members that a file reads of each of its namespaces. A namespace that is used in any other way than `Name.member` has no entry: all of it is used.
 */
const membersByNamespace = (file: SourceFile): ReadonlyMap<string, ReadonlySet<string>> => {
  const namespaces = new Set(
    file.module.staticImports.flatMap(({ entries }) =>
      entries.filter(({ importName }) => importName.kind === "NamespaceObject").map(({ localName }) => localName.value)
    )
  )
  const members = new Map([...namespaces].map((name) => [name, new Set<string>()]))
  walk(file.body, (node, above) => {
    if (node.type !== "Identifier" || !namespaces.has(node.name as string)) return
    const name = node.name as string
    const holder = above[0]!
    if (holder.type === "ImportNamespaceSpecifier") return
    const member = memberRead(holder, node)
    if (member === undefined) members.delete(name)
    else members.get(name)?.add(member)
  })
  return members
}

/** The name that `Holder.name` reads of an identifier; undefined when the identifier is used as a whole; empty when it only looks alike. */
const memberRead = (holder: Node, node: Node): string | undefined => {
  if (holder.type === "MemberExpression")
    return holder.object === node
      ? holder.computed === true
        ? undefined
        : ((holder.property as Node).name as string)
      : ""
  if (holder.type === "TSQualifiedName") return holder.left === node ? ((holder.right as Node).name as string) : ""
  // A key or a member of the same name is not the namespace.
  if (holder.key === node && holder.shorthand !== true) return ""
  return undefined
}

const exportNames = (file: SourceFile): ReadonlyArray<string> => [
  ...new Set(
    file.module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ exportName }) => (exportName.name === null ? [] : [exportName.name]))
    )
  )
]

const faultOf = (file: SourceFile, name: string, users: ReadonlyArray<string>): string | undefined => {
  const others = users.filter((user) => user !== file.path)
  // A type in the signature of another export has to be nameable, so that declarations can be made of what uses that.
  if (others.length === 0 && isType(file, name) && occurrences(file, name) > 1) return undefined
  if (others.length === 0) return `${name} is exported, and no other file uses it`
  if (others.every(isTest) && !isTest(file.path) && occurrences(file, name) < 2) return `only tests use ${name}`
  return undefined
}

const isType = (file: SourceFile, name: string): boolean =>
  file.body.some((statement) => {
    const declared = statement.type === "ExportNamedDeclaration" ? (statement.declaration as Node | null) : null
    return declared?.type.startsWith("TS") === true && nameOf(declared) === name
  })

/** How often an identifier stands in a file, its declaration included. */
const occurrences = (file: SourceFile, name: string): number => {
  let count = 0
  walk(file.body, (node) => {
    if (node.type === "Identifier" && node.name === name) count++
  })
  return count
}

interface ErrorClass {
  readonly file: SourceFile
  readonly name: string
}

const errorBase = /\b(?:Schema|Data)\.Tagged(?:Error|ErrorClass)\b|\bextends (?:\w+\.)?\w*Error\b/

const errorClasses = (sources: ReadonlyArray<SourceFile>): ReadonlyArray<ErrorClass> =>
  sources
    .filter(({ path }) => path.includes("/src/") && !isExample(path))
    .flatMap((file) => {
      const found: Array<ErrorClass> = []
      walk(file.body, (node) => {
        if (node.type !== "ClassDeclaration" || node.superClass === null) return
        const head = file.text.slice(node.start, (node.body as Node).start)
        if (errorBase.test(head)) found.push({ file, name: nameOf(node)! })
      })
      return found
    })

/** Classes that a source file constructs: `new Name(...)`, `Name.make(...)`, also behind a namespace or under a name of the import. */
const raisedNames = (sources: ReadonlyArray<SourceFile>): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const file of sources.filter(({ path }) => !isTest(path)))
    walk(file.body, (node, above) => {
      const name = node.type === "MemberExpression" ? (node.property as Node).name : node.name
      if (typeof name !== "string") return
      const holder = above[0]
      if (holder?.type === "NewExpression" && holder.callee === node) names.add(name)
      if (holder?.type === "MemberExpression" && holder.object === node) {
        const method = (holder.property as Node).name
        if (method === "make" || method === "makeUnsafe") names.add(name)
      }
      // Given to something that constructs it, or extended.
      if (holder?.type === "CallExpression" && holder.callee !== node) names.add(name)
      if (holder?.type === "ClassDeclaration" && holder.superClass === node) names.add(name)
    })
  return names
}

const violationAt = (file: SourceFile, name: string, message: string): Violation => {
  const at = file.text.search(new RegExp(`\\bexport [^\\n]*\\b${name.replace(/\$/g, "\\$")}\\b`))
  return { file: file.path, ...(at === -1 ? {} : { line: file.lineAt(at) }), message }
}
