/**
 * The API reference: one page for each public module, made of its docstrings, its declarations, and the types that the compiler found.
 *
 * Interfaces, types and classes are shown as the source has them, with the docstrings of their members. Values are shown with their
 * full type, from the declarations that `tsc -b` makes.
 */

import { existsSync, globSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { anchorsOf } from "./anchors.ts"
import { errorsPage, eventsPage } from "./catalogs.ts"
import type { Check, Violation } from "./report.ts"
import { settingsPage } from "./settingsReference.ts"
import { children, docstringText, type Node, nameOf, readSource, type SourceFile, walk } from "./sourceFile.ts"
import {
  type Declaration,
  type Export,
  isPrivate,
  type PublicModule,
  type PublicPackage,
  publicPackages
} from "./surface.ts"

const folder = "docs/reference"

/** The type of a schema grows with all that it holds. Above this many lines its source says more. */
const maxTypeLines = 10

/** The pages by their path. Throws when the declarations of a package have not been built. */
export const referencePages = (root: string): ReadonlyMap<string, string> => {
  const packages = publicPackages(root).filter(({ isPrivate }) => !isPrivate)
  const pages = packages.flatMap((owner) =>
    owner.modules.map((module) => [pathOf(owner, module), page(root, owner, module)] as const)
  )
  const catalogs = [
    ["settings", settingsPage(root)],
    ["events", eventsPage(folder, packages, pathOf)],
    ["errors", errorsPage(folder, packages, pathOf)]
  ].flatMap(([name, content]) => (content === undefined ? [] : [[`${folder}/${name}.md`, content] as const]))
  return new Map([[`${folder}/README.md`, index(packages)], ...catalogs, ...pages])
}

/** The pages of `docs/reference` are those that the sources give. */
export const reference: Check = (root) => {
  const pages = referencePages(root)
  const present = globSync(`${folder}/**/*.md`, { cwd: root })
  const stale = [...pages].flatMap(([file, content]): ReadonlyArray<Violation> => {
    if (!existsSync(join(root, file))) return [{ file, message: "is missing: pnpm docs:reference writes it" }]
    return readFileSync(join(root, file), "utf8") === content
      ? []
      : [{ file, message: "differs from the docstrings: pnpm docs:reference writes it anew" }]
  })
  const left = present
    .filter((file) => !pages.has(file))
    .map((file) => ({ file, message: "belongs to no public module" }))
  return { violations: [...stale, ...left], summary: `${pages.size} pages` }
}

const pathOf = ({ folder: home }: PublicPackage, { name }: PublicModule): string =>
  `${folder}/${posix.basename(home)}/${name}.md`

const index = (packages: ReadonlyArray<PublicPackage>): string =>
  [
    "# API reference",
    "",
    "Made of the docstrings by `pnpm docs:reference`. Each page is a module; types are those that the compiler found.",
    "",
    ...(packages.length === 0
      ? []
      : ["All [settings](settings.md), [events](events.md) and [errors](errors.md) in one table each.", ""]),
    ...packages.flatMap((owner) => [
      `## ${owner.name}`,
      "",
      "| module | |",
      "|---|---|",
      ...owner.modules.map((module) => {
        const link = posix.relative(folder, pathOf(owner, module))
        return `| [${module.name}](${link}) | ${cell(firstSentence(moduleDocstring(module)))} |`
      }),
      ""
    ])
  ].join("\n")

const page = (root: string, owner: PublicPackage, module: PublicModule): string => {
  const anchors = anchorsOf(module.exports.map(({ name }) => name))
  const source = posix.relative(posix.dirname(pathOf(owner, module)), module.file.path)
  return [
    `# Module ${module.name}`,
    "",
    `\`${module.importedAs}\` · [source](${source}) · [all modules](../README.md)`,
    "",
    moduleDocstring(module),
    "",
    "| export | |",
    "|---|---|",
    ...module.exports.map(
      ({ name, docstring = "" }, index) => `| [\`${name}\`](#${anchors[index]}) | ${cell(firstSentence(docstring))} |`
    ),
    "",
    ...module.exports.flatMap((exported) => section(root, exported))
  ].join("\n")
}

const section = (root: string, exported: Export): ReadonlyArray<string> => [
  `## ${exported.name}`,
  "",
  ...(exported.docstring === undefined ? [] : [exported.docstring, ""]),
  // Not `ts`: a signature alone does not compile, and the check of the examples would try it.
  "```tsx",
  ...exported.declarations.map((declaration) => signature(root, exported.name, declaration)),
  "```",
  ""
]

const moduleDocstring = ({ file }: PublicModule): string => {
  const first = file.comments[0]
  return first?.value.startsWith("*") ? docstringText(first.value) : ""
}

/** The first sentence of a docstring, in one line. */
const firstSentence = (docstring: string): string => {
  const paragraph = (docstring.split(/\n\s*\n/)[0] ?? "").replace(/\s+/g, " ").replace(/^- | ?```.*/g, "")
  const end = paragraph.search(/[.!?](?= |$)/)
  return end === -1 ? paragraph : paragraph.slice(0, end + 1)
}

const cell = (text: string): string => text.replaceAll("|", "\\|")

const signature = (root: string, name: string, declaration: Declaration): string => {
  const { file, node } = declaration
  if (node.type === "ClassDeclaration") return classText(file, node)
  if (node.type.startsWith("TS") && node.type !== "TSDeclareFunction") return file.text.slice(node.start, node.end)
  return declaredType(root, name, declaration)
}

/** A class without the bodies of its methods, and without members that are private or only override. */
const classText = (file: SourceFile, node: Node): string => {
  const body = node.body as Node
  const head = file.text.slice(node.start, body.start).trimEnd()
  const members = children(body)
    .filter((member) => member.override !== true && !isPrivate(member))
    .map((member) => memberText(file, member))
  return members.length === 0 ? `${head} {}` : `${head} {\n${members.map((member) => `  ${member}`).join("\n")}\n}`
}

const memberText = (file: SourceFile, member: Node): string => {
  const comment = file.commentBefore(member.start)
  const doc = comment?.value.startsWith("*") ? `${file.text.slice(comment.start, comment.end)}\n  ` : ""
  const block = member.type === "MethodDefinition" ? ((member.value as Node).body as Node | null) : null
  return doc + file.text.slice(member.start, block?.start ?? member.end).trimEnd()
}

const isCall = (node: Node): boolean => (node.init as Node | null | undefined)?.type === "CallExpression"

const bodyOfArrow = (node: Node): Node | undefined => {
  const init = node.init as Node | null | undefined
  return init?.type === "ArrowFunctionExpression" ? (init.body as Node) : undefined
}

/** The declaration of a value as the compiler writes it, with the names of types and without where they come from. */
const declaredType = (root: string, name: string, { file, node }: Declaration): string => {
  const path = file.path.replace("/src/", "/dist/").replace(/\.ts$/, ".d.ts")
  if (!existsSync(join(root, path))) throw new Error(`${path} is missing: pnpm check builds it`)
  const built = readSource(root, path)
  const local = nameOf(node) ?? name
  let text: string | undefined
  walk(built.body, (found, above) => {
    if (text !== undefined || nameOf(found) !== local) return
    if (found.type === "VariableDeclarator") text = `const ${built.text.slice(found.start, found.end)}`
    if (found.type === "TSDeclareFunction" && above.length <= 1)
      text = built.text.slice(found.start, found.end).replace(/^declare /, "")
  })
  if (text === undefined) throw new Error(`${path} has no ${local}: pnpm check builds it`)
  if (text.split("\n").length > maxTypeLines) {
    if (isCall(node)) return `const ${file.text.slice(node.start, node.end)}`
    // The compiler writes the parts of a long union in an order that differs from run to run.
    const body = bodyOfArrow(node)
    if (body !== undefined) return `const ${file.text.slice(node.start, body.start).trimEnd()} …`
  }
  return text
    .replace(/import\("[^"]+"\)\./g, "")
    .replace(/;$/, "")
    .replace(/\b_(\w+)\./g, "$1.")
}
