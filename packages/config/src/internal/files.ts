/**
 * Reads a configuration's files: what it includes, itself, and its profiles, each over the one before.
 */
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import { Effect } from "effect"
import { canonical } from "./canonical.ts"
import type { Issues } from "./issues.ts"
import * as Node from "./node.ts"
import { overlay } from "./overlay.ts"
import type { Shape } from "./shape.ts"
import * as Texts from "./texts.ts"

/** The bytes of a regular file; another one, or one that is too large, is not read. */
export const readBytes = Effect.fnUntraced(function* (path: string) {
  return yield* Effect.tryPromise({
    try: async () => {
      const file = await Fs.open(path)
      try {
        const stat = await file.stat()
        if (!stat.isFile()) return { problem: "something that is not a regular file" }
        return stat.size > Texts.maxBytes
          ? { problem: `a file of ${stat.size} bytes`, allowed: `at most ${Texts.maxBytes} bytes` }
          : { bytes: await file.readFile() }
      } finally {
        await file.close()
      }
    },
    catch: (thrown) => (thrown as NodeJS.ErrnoException).code ?? "an error"
  }).pipe(
    Effect.catch((code) =>
      Effect.succeed({ problem: code === "ENOENT" ? "no such file" : `a file that cannot be read (${code})` })
    )
  )
})

const formatOf = (path: string): Texts.Format => (path.endsWith(".json") ? "json" : "yaml")

/** Reads files of one shape. Undefined where a file cannot be read, which is an issue. */
export const reader = (shape: Shape, issues: Issues) => {
  /** A file is read once, however often it is included. */
  const known = new Map<string, Node.Node | undefined>()

  const read = Effect.fnUntraced(function* (
    file: string,
    chain: ReadonlyArray<string>
  ): Effect.fn.Return<Node.Node | undefined> {
    const path = Path.resolve(file)
    if (known.has(path)) return known.get(path)
    const result = yield* readBytes(path)
    if (!("bytes" in result)) {
      issues.unreadable(result.problem, ("allowed" in result && result.allowed) || "a file that can be read", { file })
      return undefined
    }
    const text = Texts.decode(result.bytes, file, issues)
    const node = text === undefined ? undefined : Texts.parse(text, file, formatOf(file), issues)
    const tree = node === undefined ? undefined : yield* including(canonical(node, shape, [], issues), file, chain)
    known.set(path, tree)
    return tree
  })

  /** The tree over the files that it includes. */
  const including = Effect.fnUntraced(function* (
    tree: Node.Node,
    file: string,
    chain: ReadonlyArray<string>
  ): Effect.fn.Return<Node.Node> {
    const here = [...chain, file]
    let base: Node.Node | undefined
    for (const include of includesOf(tree)) {
      const path = Path.join(Path.dirname(file), String(include.value))
      if (here.some((each) => Path.resolve(each) === Path.resolve(path))) {
        issues.add(["include"], [...here, path].join(" -> "), "includes without a cycle", Node.place(include))
        continue
      }
      const included = yield* read(path, here)
      if (included !== undefined) base = overlay(base, included)
    }
    return overlay(base, withoutIncludes(tree))
  })

  return (file: string): Effect.Effect<Node.Node | undefined> => read(file, [])
}

const includesOf = (tree: Node.Node): ReadonlyArray<Node.Scalar> => {
  const include = Node.child(tree, "include")
  if (include === undefined) return []
  return (include._tag === "List" ? include.items : [include]).filter(
    (each): each is Node.Scalar => each._tag === "Scalar" && typeof each.value === "string"
  )
}

const isFiles = (node: Node.Node): boolean =>
  node._tag === "Scalar" ? typeof node.value === "string" : node._tag === "List" && node.items.every(isFiles)

/** What is no list of files stays, for the schema to refuse. */
const withoutIncludes = (tree: Node.Node): Node.Node =>
  tree._tag === "Section"
    ? { ...tree, entries: tree.entries.filter(({ key, value }) => !(key === "include" && isFiles(value))) }
    : tree

/** `conf/app.yaml` and `prod` to `conf/app-prod.yaml`. */
export const profileFile = (file: string, profile: string): string => {
  const { dir, name, ext } = Path.parse(file)
  return Path.join(dir, `${name}-${profile}${ext}`)
}

/** Puts the content of `passwordFile` where `password` is, and so for every key with such a twin, which gets its full path. */
export const readSecrets = Effect.fnUntraced(function* (
  node: Node.Node,
  shape: Shape,
  path: Node.Path,
  issues: Issues
): Effect.fn.Return<Node.Node> {
  if (node._tag !== "Section") return node
  const options = shape._tag === "Either" ? shape.options : [shape]
  const struct = options.find((option) => option._tag === "Struct")
  const dictionary = options.find((option) => option._tag === "Dictionary")
  const entries: Array<Node.Entry> = []
  for (const entry of node.entries) {
    const key = entry.key.endsWith("File") ? entry.key.slice(0, -"File".length) : undefined
    const inner = struct?.keys.get(entry.key)?.shape ?? dictionary?.value
    if (key === undefined || struct?.keys.has(key) !== true || typeof textOf(entry.value) !== "string") {
      const value =
        inner === undefined ? entry.value : yield* readSecrets(entry.value, inner, [...path, entry.key], issues)
      entries.push({ ...entry, value })
      continue
    }
    const other = Node.child(node, key)
    if (other !== undefined) {
      issues.add([...path, entry.key], `${entry.key} beside ${key}`, "one of the two", Node.place(entry.value))
      continue
    }
    const scalar = entry.value as Node.Scalar
    const file = pathOf(scalar)
    entries.push({ key, offset: entry.offset, value: yield* readSecret(scalar, file, [...path, entry.key], issues) })
    entries.push({ ...entry, value: { ...scalar, value: file, template: Node.show(scalar) } })
  }
  return { ...node, entries }
})

const textOf = (node: Node.Node): unknown => (node._tag === "Scalar" ? node.value : undefined)

/** Relative to the file that says it. */
const pathOf = ({ source, value }: Node.Scalar): string =>
  Path.resolve(source.text === undefined ? "." : Path.dirname(source.name), String(value))

const readSecret = Effect.fnUntraced(function* (node: Node.Scalar, file: string, path: Node.Path, issues: Issues) {
  const place = Node.place(node)
  const result = yield* readBytes(file)
  const shown = Node.show(node)
  if (!("bytes" in result)) {
    issues.add(path, `${shown}: ${result.problem}`, "a file that can be read", place)
    return { ...node, value: undefined }
  }
  const value = new TextDecoder().decode(result.bytes).replace(/\r?\n$/, "")
  return { ...node, value, template: `the content of ${shown}` }
})
