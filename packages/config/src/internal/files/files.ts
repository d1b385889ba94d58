/**
 * Reads the files of a configuration: its includes, the file itself and its profiles, each over the one before.
 */
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import { inside, type Shape, select } from "../schema/shape.ts"
import type { Issues } from "../tree/issues.ts"
import * as Node from "../tree/node.ts"
import { assign, overlay } from "../tree/overlay.ts"
import { canonical } from "./canonical.ts"
import * as Texts from "./texts.ts"

/** Reads the bytes of a regular file. Other kinds of files and files over the limit are refused. */
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

/** A reader for files of one shape. Its result is undefined for a file that cannot be read, which is also an issue. */
export const reader = (shape: Shape, issues: Issues) => {
  /** Each file is read once, however often it is included. */
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
    if (path.endsWith(".properties")) {
      const allowed = "YAML or JSON with the root eventbus; a .properties file is one of MessagingConfiguration"
      issues.unreadable("a .properties file", allowed, { file })
      return undefined
    }
    const text = Texts.decode(result.bytes, file, issues)
    const node = text === undefined ? undefined : Texts.parse(text, file, formatOf(file), issues)
    const tree = node === undefined ? undefined : yield* including(canonical(node, shape, issues), file, chain)
    known.set(path, tree)
    return tree
  })

  /** Lays the tree over the files that it includes. */
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
        issues.add(["include"], [...here, path].join(" -> "), "includes without a cycle", Node.sourceLocation(include))
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

/** An `include` that is not a list of files stays, so that the schema refuses it. */
const withoutIncludes = (tree: Node.Node): Node.Node =>
  tree._tag === "Section"
    ? { ...tree, entries: tree.entries.filter(({ key, value }) => !(key === "include" && isFiles(value))) }
    : tree

/** Maps `conf/app.yaml` and `prod` to `conf/app-prod.yaml`. */
export const profileFile = (file: string, profile: string): string => {
  const { dir, name, ext } = Path.parse(file)
  return Path.join(dir, `${name}-${profile}${ext}`)
}

/**
 * Reads the secrets of the clusters from files: the content of `passwordFile` becomes `password`, and so for every key with a `File` key. The `File`
 * key gets its absolute path.
 */
export const readSecrets = Effect.fnUntraced(function* (
  root: Node.Node,
  shape: Shape,
  issues: Issues
): Effect.fn.Return<Node.Node> {
  const clusters = Node.child(Node.child(root, "eventbus"), "clusters")
  if (clusters === undefined) return root
  const path = ["eventbus", "clusters"]
  return assign(root, path, yield* withSecrets(clusters, path.reduce(inside, shape), path, issues))
})

const withSecrets = Effect.fnUntraced(function* (
  node: Node.Node,
  shape: Shape,
  path: Node.Path,
  issues: Issues
): Effect.fn.Return<Node.Node> {
  if (node._tag !== "Section") return node
  const entries: Array<Node.Entry> = []
  for (const entry of node.entries) {
    const here = [...path, entry.key]
    const valueKey = valueKeyOf(entry.key, shape)
    if (valueKey === undefined || entry.value._tag !== "Scalar" || typeof entry.value.value !== "string") {
      entries.push({ ...entry, value: yield* withSecrets(entry.value, inside(shape, entry.key), here, issues) })
      continue
    }
    if (Node.child(node, valueKey) !== undefined) {
      issues.add(here, `${entry.key} beside ${valueKey}`, "one of the two", Node.sourceLocation(entry.value))
      continue
    }
    const file = pathOf(entry.value)
    entries.push({ key: valueKey, offset: entry.offset, value: yield* readSecret(entry.value, file, here, issues) })
    entries.push({ ...entry, value: { ...entry.value, value: file, template: Node.show(entry.value) } })
  }
  return { ...node, entries }
})

/** Maps `passwordFile` to `password` where both are keys. */
const valueKeyOf = (key: string, shape: Shape): string | undefined => {
  const valueKey = key.endsWith("File") ? key.slice(0, -"File".length) : undefined
  return valueKey !== undefined && select(shape, "Struct")?.keys.has(valueKey) ? valueKey : undefined
}

/** The path relative to the file that contains it. */
const pathOf = ({ source, value }: Node.Scalar): string =>
  Path.resolve(source.text === undefined ? "." : Path.dirname(source.name), String(value))

const readSecret = Effect.fnUntraced(function* (node: Node.Scalar, file: string, path: Node.Path, issues: Issues) {
  const location = Node.sourceLocation(node)
  const result = yield* readBytes(file)
  const shown = Node.show(node)
  if (!("bytes" in result)) {
    issues.add(path, `${shown}: ${result.problem}`, "a file that can be read", location)
    return { ...node, value: undefined }
  }
  const value = new TextDecoder().decode(result.bytes).replace(/\r?\n$/, "")
  return { ...node, value, template: `the content of ${shown}` }
})
