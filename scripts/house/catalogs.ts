/**
 * Two tables over the modules of all packages: every event, and every error, with what it means.
 */
import { posix } from "node:path"
import { anchorsOf } from "./anchors.ts"
import { children, docstringBefore, type Node, nameOf, type SourceFile } from "./sourceFile.ts"
import type { Declaration, PublicModule, PublicPackage } from "./surface.ts"

/** Finds the page of a module. */
export type PageOf = (owner: PublicPackage, module: PublicModule) => string

interface Row {
  readonly name: string
  readonly meaning: string
  readonly details: string
}

/** The exported unions that events are alternatives of. */
const eventUnions = ["EventBusEvent", "StrategyEvent", "UnreadableEvent", "DecisionEvent"]

/** The page of events, or undefined in a tree that has none. */
export const eventsPage = (
  folder: string,
  packages: ReadonlyArray<PublicPackage>,
  pageOf: PageOf
): string | undefined => {
  const exported = packages.flatMap((owner) =>
    owner.modules.flatMap((module) => module.exports.map((each) => ({ owner, module, ...each })))
  )
  const eventsByName = new Map(
    exported.flatMap(({ name, declarations }) =>
      declarations.filter(({ node }) => node.type === "TSInterfaceDeclaration").map((found) => [name, found] as const)
    )
  )
  const unions = eventUnions.flatMap((wanted) =>
    exported
      .filter(({ name }) => name === wanted)
      .map(({ owner, module, name, declarations }) => ({
        name,
        module,
        rows: declarations.flatMap((declaration) => eventRows(declaration, eventsByName)),
        page: posix.relative(folder, pageOf(owner, module))
      }))
  )
  if (unions.length === 0) return undefined
  return [
    "# Events",
    "",
    "Everything that happens in the connector is an event. `connector.events` is a stream of them, `connector.subscribe` calls a listener; logs, metrics and the admin API are made of them.",
    "Every event has `_tag`, `cluster` and `binding`; one about a consumer, a partition or a record has the fields of [its subject](core/EventBusEvent.md) too.",
    "",
    ...unions.flatMap(({ name, module, rows, page }) => [
      `## ${name}`,
      "",
      `Types: [${module.name}](${page}#${anchorsOf([name])[0]}).`,
      "",
      "| event | when | fields of its own |",
      "|---|---|---|",
      ...rows.map(tableRow),
      ""
    ])
  ].join("\n")
}

const tableRow = ({ name, meaning, details }: Row): string =>
  `| ${[`\`${name}\``, meaning, details].map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`

/** The alternatives of a union that have a `_tag`: of their own, or of an interface that they name. */
const eventRows = ({ file, node }: Declaration, byName: ReadonlyMap<string, Declaration>): ReadonlyArray<Row> => {
  const type = node.typeAnnotation as Node | undefined
  if (type?.type !== "TSUnionType") return []
  return (type.types as ReadonlyArray<Node>).flatMap((alternative) => {
    const members = literalsIn(alternative).flatMap((literal) => literal.members as ReadonlyArray<Node>)
    const meaning = alternativeComment(file, alternative)
    const named = namesIn(alternative).flatMap((name) => {
      const found = byName.get(name)
      return found === undefined ? [] : interfaceRow(found, meaning)
    })
    return [...rowOf(file, members, meaning), ...named]
  })
}

const interfaceRow = ({ file, node, statement }: Declaration, meaning: string): ReadonlyArray<Row> => {
  const own = (docstringBefore(file, statement.start) ?? "").replace(/\s+/g, " ")
  return rowOf(file, (node.body as Node).body as ReadonlyArray<Node>, meaning === "" ? own : meaning)
}

/** None for members without a `_tag`. */
const rowOf = (file: SourceFile, members: ReadonlyArray<Node>, meaning: string): ReadonlyArray<Row> => {
  const tag = members.find((member) => nameOf(member) === "_tag")
  if (tag === undefined) return []
  const names = members.map(nameOf).filter((name) => name !== undefined && name !== "_tag")
  return [{ name: tagText(file, tag), meaning, details: names.map((name) => `\`${name}\``).join(", ") }]
}

const namesIn = (node: Node): ReadonlyArray<string> =>
  node.type === "TSTypeReference"
    ? [String((node.typeName as Node).name)]
    : node.type === "TSTypeLiteral"
      ? []
      : children(node).flatMap(namesIn)

/** The docstring stands before the bar that begins the alternative. */
const alternativeComment = (file: SourceFile, alternative: Node): string => {
  const bar = file.text.slice(0, alternative.start).replace(/[\s|(]*$/, "").length
  return (docstringBefore(file, alternative.start) ?? docstringBefore(file, bar) ?? "").replace(/\s+/g, " ")
}

const literalsIn = (node: Node): ReadonlyArray<Node> =>
  node.type === "TSTypeLiteral" ? [node] : node.type === "TSUnionType" ? [] : children(node).flatMap(literalsIn)

const tagText = (file: SourceFile, tag: Node): string => /"(\w+)"/.exec(file.text.slice(tag.start, tag.end))?.[1] ?? ""

/** The page of errors, or undefined in a tree that has none. */
export const errorsPage = (
  folder: string,
  packages: ReadonlyArray<PublicPackage>,
  pageOf: PageOf
): string | undefined => {
  const found = packages.flatMap((owner) => {
    const rows = owner.modules.flatMap((module) => {
      const anchors = anchorsOf(module.exports.map(({ name }) => name))
      return module.exports.flatMap(({ name, declarations, docstring = "" }, index) =>
        declarations.some(isError)
          ? [{ name, link: `${posix.relative(folder, pageOf(owner, module))}#${anchors[index]}`, docstring }]
          : []
      )
    })
    return rows.length === 0 ? [] : [{ owner, rows }]
  })
  if (found.length === 0) return undefined
  return [
    "# Errors",
    "",
    "Every error class of the packages. In Effect each is a tagged error, by its name as `_tag`; promises of `@eventbus/node` reject with the same objects, so `instanceof` tells them apart.",
    "[Answers by error message](../guide/faq.md) says what to do about the likely ones.",
    "",
    ...found.flatMap(({ owner, rows }) => [
      `## ${owner.name}`,
      "",
      "| error | means |",
      "|---|---|",
      ...rows.map(({ name, link, docstring }) => `| [\`${name}\`](${link}) | ${inOneLine(docstring)} |`),
      ""
    ])
  ].join("\n")
}

const inOneLine = (docstring: string): string =>
  docstring
    .replace(/```[\s\S]*?```/g, "")
    .replace(/\s+/g, " ")
    .replaceAll("|", "\\|")
    .trim()

/** `class X extends Schema.TaggedError…`, or an alias of one. */
const isError = ({ file, node }: Declaration): boolean =>
  node.type === "ClassDeclaration" &&
  node.superClass !== null &&
  /TaggedError|extends \w*Error\b/.test(file.text.slice(node.start, (node.body as Node).start))
