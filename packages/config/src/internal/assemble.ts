/**
 * From a tree to settings: the schema, and the rules for settings that belong together. A binding with a mistake does not hide those of others, nor other
 * mistakes of its own.
 */
import * as BindingSettings from "../BindingSettings.ts"
import * as ClusterSettings from "../ClusterSettings.ts"
import * as Settings from "../Settings.ts"
import * as Coherence from "./coherence.ts"
import { decoder } from "./decoding.ts"
import * as Issues from "./issues.ts"
import * as Node from "./node.ts"

interface Assembled {
  readonly clusters: ReadonlyArray<ClusterSettings.ClusterSettings>
  readonly bindings: ReadonlyArray<BindingSettings.BindingSettings>
}

const decodeRoot = decoder(Settings.Root)
const decodeBinding = decoder(Settings.Binding)

/** Undefined when the schema refuses a part of it. */
export const all = (tree: Node.Node, issues: Issues.Issues): Assembled | undefined => {
  const decoded = decodeRoot(tree, [], issues)
  if ("refused" in decoded) {
    partial(tree, issues)
    return undefined
  }
  const { clusters = {}, bindings } = decoded.value.eventbus
  const settings = {
    clusters: Object.entries(clusters).map(([alias, cluster]) => ClusterSettings.complete(alias, cluster)),
    bindings: Object.entries(bindings).map(([name, binding]) => BindingSettings.complete(name, binding))
  }
  checkAliases(tree, issues)
  checkRules(
    settings.bindings.map((binding) => ({ binding, unknown: nothing })),
    tree,
    issues
  )
  return settings
}

/** Undefined when the schema refuses a part of it. Paths begin below the binding. */
export const one = (
  name: string,
  tree: Node.Node,
  issues: Issues.Issues
): BindingSettings.BindingSettings | undefined => {
  const readable = withoutRefused(name, tree, [], issues)
  if (readable !== undefined) report([readable], tree, () => [], issues)
  return readable === undefined || readable.unknown.size > 0 ? undefined : readable.binding
}

interface Readable {
  readonly binding: BindingSettings.BindingSettings
  /** First keys of what the schema refused, which have their defaults, or a placeholder, here. */
  readonly unknown: ReadonlySet<string>
}

const nothing: ReadonlySet<string> = new Set()
const bindingsPath = ["eventbus", "bindings"]

const partial = (tree: Node.Node, issues: Issues.Issues): void => {
  const bindings = Node.child(Node.child(tree, "eventbus"), "bindings")
  if (bindings?._tag !== "Section") return
  checkAliases(tree, issues)
  const readable = bindings.entries.flatMap(
    ({ key, value }) => withoutRefused(key, value, [...bindingsPath, key], Issues.make()) ?? []
  )
  checkRules(readable, tree, issues)
}

/** What can be read of a binding; undefined when it is no section. */
const withoutRefused = (
  name: string,
  node: Node.Node,
  path: Node.Path,
  issues: Issues.Issues
): Readable | undefined => {
  const decoded = decodeBinding(node, path, issues)
  if ("value" in decoded) return { binding: BindingSettings.complete(name, decoded.value), unknown: nothing }
  if (node._tag !== "Section") return undefined
  const unknown = new Set(decoded.refused.map(([key]) => String(key)))
  const rest = node.entries.filter(({ key }) => !unknown.has(key))
  const placeholders = ["topic", "groupId"].filter((key) => unknown.has(key)).map((key) => placeholder(key, node))
  const again = decodeBinding({ ...node, entries: [...rest, ...placeholders] }, [], Issues.make())
  return "value" in again ? { binding: BindingSettings.complete(name, again.value), unknown } : undefined
}

/** Stands for what has no default and was refused. */
const placeholder = (key: string, { source, offset }: Node.Section): Node.Entry => ({
  key,
  offset,
  value: { _tag: "Scalar", source, offset, value: "refused" }
})

const checkRules = (readable: ReadonlyArray<Readable>, tree: Node.Node, issues: Issues.Issues): void =>
  report(readable, tree, (name) => [...bindingsPath, name], issues)

const report = (
  readable: ReadonlyArray<Readable>,
  tree: Node.Node,
  prefix: (name: string) => Node.Path,
  issues: Issues.Issues
): void => {
  for (const { index, path, found, allowed } of Coherence.problems(readable.map(({ binding }) => binding))) {
    const { binding, unknown } = readable[index]!
    if (Coherence.dependsOn(path[0], unknown)) continue
    add([...prefix(binding.name), ...path], found, allowed, tree, issues)
  }
}

/** Where the file has clusters, bindings name one of them. */
const checkAliases = (tree: Node.Node, issues: Issues.Issues): void => {
  const eventbus = Node.child(tree, "eventbus")
  const clusters = Node.child(eventbus, "clusters")
  const bindings = Node.child(eventbus, "bindings")
  if (clusters?._tag !== "Section" || bindings?._tag !== "Section") return
  const known = clusters.entries.map(({ key }) => key)
  for (const { key, value } of bindings.entries) {
    const cluster = Node.child(value, "cluster")
    const alias = cluster === undefined ? "default" : cluster._tag === "Scalar" ? cluster.value : undefined
    if (typeof alias !== "string" || known.includes(alias)) continue
    const allowed = known.length === 0 ? "a cluster in eventbus.clusters" : `one of the clusters ${known.join(", ")}`
    add([...bindingsPath, key, "cluster"], JSON.stringify(alias), allowed, tree, issues)
  }
}

/** At the place of the path, or of what is nearest above it. */
const add = (path: Node.Path, found: string, allowed: string, tree: Node.Node, issues: Issues.Issues): void => {
  let node: Node.Node | undefined = tree
  let nearest = tree
  for (const key of path) {
    node = Node.child(node, key)
    nearest = node ?? nearest
  }
  // What a variable holds is not told.
  const isVariable = node?._tag === "Scalar" && node.template !== undefined
  issues.add(path, isVariable ? Node.show(node!) : found, allowed, Node.place(nearest))
}
