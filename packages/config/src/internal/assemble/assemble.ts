/**
 * From a tree to settings: the schema, and the rules for settings that belong together. A binding with a mistake does not hide those of others, nor other
 * mistakes of its own.
 */
import * as BindingSettings from "../../BindingSettings.ts"
import * as ClusterSettings from "../../ClusterSettings.ts"
import type { Handlers } from "../../Handlers.ts"
import * as Settings from "../../Settings.ts"
import { decoder } from "../schema/decoding.ts"
import * as Shape from "../schema/shape.ts"
import * as Issues from "../tree/issues.ts"
import * as Names from "../tree/names.ts"
import * as Node from "../tree/node.ts"
import { assign, without } from "../tree/overlay.ts"
import * as Causes from "./causes.ts"
import * as Coherence from "./coherence.ts"
import * as HandlerChecks from "./handlerChecks.ts"

interface Assembled {
  readonly clusters: ReadonlyArray<ClusterSettings.ClusterSettings>
  readonly bindings: ReadonlyArray<BindingSettings.BindingSettings>
}

const decodeRoot = decoder(Settings.Root)
const decodeBinding = decoder(Settings.Binding)

/** Undefined when the schema refuses a part of it. */
export const all = (
  tree: Node.Node,
  issues: Issues.Issues,
  handlers: Handlers<unknown> | undefined
): Assembled | undefined => {
  const decoded = decodeRoot(tree, [], issues)
  if ("refused" in decoded) {
    partial(tree, issues, handlers)
    return undefined
  }
  const { clusters = {}, bindings } = decoded.value.eventbus
  const settings = {
    clusters: Object.entries(clusters).map(([alias, cluster]) => ClusterSettings.complete(alias, cluster)),
    bindings: Object.entries(bindings).map(([name, binding]) => BindingSettings.complete(name, binding))
  }
  checkAliases(tree, issues)
  checkRules(
    settings.bindings.map((binding) => ({ binding, unknown: [] })),
    tree,
    issues,
    handlers
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
  return readable === undefined || readable.unknown.length > 0 ? undefined : readable.binding
}

const bindingsPath = ["eventbus", "bindings"]

const partial = (tree: Node.Node, issues: Issues.Issues, handlers: Handlers<unknown> | undefined): void => {
  const bindings = Node.child(Node.child(tree, "eventbus"), "bindings")
  if (bindings?._tag !== "Section") return
  checkAliases(tree, issues)
  const readable = bindings.entries.flatMap(
    ({ key, value }) => withoutRefused(key, value, [...bindingsPath, key], Issues.make()) ?? []
  )
  checkRules(readable, tree, issues, handlers)
}

/** What can be read of a binding; undefined when it is no section. */
const withoutRefused = (
  name: string,
  node: Node.Node,
  path: Node.Path,
  issues: Issues.Issues
): Coherence.Readable | undefined => {
  const decoded = decodeBinding(node, path, issues)
  if ("value" in decoded) return { binding: BindingSettings.complete(name, decoded.value), unknown: [] }
  if (node._tag !== "Section") return undefined
  const unknown = decoded.refused.map((each) => Shape.optionalPart(bindingShape, each))
  const readable = unknown.reduce(
    (rest, part) => (isRequired(part) ? assign(rest, part, placeholder(node)) : without(rest, part)),
    node as Node.Node
  )
  const again = decodeBinding(readable, [], Issues.make())
  return "value" in again ? { binding: BindingSettings.complete(name, again.value), unknown } : undefined
}

const bindingShape = Shape.make(Settings.Binding.ast)

const isRequired = ([key]: Node.Path): boolean => key === "topic" || key === "groupId"

/** Stands for what has no default and was refused. */
const placeholder = ({ source, offset }: Node.Node): Node.Scalar => ({
  _tag: "Scalar",
  source,
  offset,
  value: "refused"
})

const checkRules = (
  readable: ReadonlyArray<Coherence.Readable>,
  tree: Node.Node,
  issues: Issues.Issues,
  handlers: Handlers<unknown> | undefined
): void => {
  report(readable, tree, (name) => [...bindingsPath, name], issues)
  if (handlers === undefined) return
  for (const { binding, unknown } of readable) {
    for (const { path, found, allowed } of HandlerChecks.problems(binding, handlers)) {
      if (!Causes.areUnknown(path, unknown)) add([...bindingsPath, binding.name, ...path], found, allowed, tree, issues)
    }
  }
}

const report = (
  readable: ReadonlyArray<Coherence.Readable>,
  tree: Node.Node,
  prefix: (name: string) => Node.Path,
  issues: Issues.Issues
): void => {
  for (const { index, path, found, allowed } of Coherence.problems(readable)) {
    add([...prefix(readable[index]!.binding.name), ...path], found, allowed, tree, issues)
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
    const allowed =
      known.length === 0
        ? "a cluster in eventbus.clusters"
        : `one of the clusters ${known.join(", ")}${Names.hint(alias, known)}`
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
