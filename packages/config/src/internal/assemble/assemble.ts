/**
 * Decodes a tree into settings and checks the rules between settings. One mistake hides neither other mistakes of its binding nor those of other bindings.
 */
import type { Audit, Fleet } from "@eventbus/core"
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
import * as HandlerChecks from "./handlerChecks.ts"
import * as RuleInputs from "./ruleInputs.ts"
import * as SettingRules from "./settingRules.ts"

interface Assembled {
  readonly clusters: ReadonlyArray<ClusterSettings.ClusterSettings>
  readonly bindings: ReadonlyArray<BindingSettings.BindingSettings>
  /** Absent when the process joins no fleet. */
  readonly fleet?: Fleet.Settings
  /** Absent when nothing is audited. */
  readonly audit?: Audit.Settings
}

const decodeRoot = decoder(Settings.Root)
const decodeBinding = decoder(Settings.Binding)

/** Decodes a whole configuration. Undefined when the schema refuses a part of it. */
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
  const { clusters = {}, bindings, fleet, audit } = decoded.value.eventbus
  const settings: Assembled = {
    ...(fleet === undefined ? {} : { fleet: fleetOf(fleet) }),
    ...(audit === undefined ? {} : { audit: auditOf(audit) }),
    clusters: Object.entries(clusters).map(([alias, cluster]) => ClusterSettings.complete(alias, cluster)),
    bindings: Object.entries(bindings).map(([name, binding]) => BindingSettings.complete(name, binding))
  }
  checkAliases(tree, issues)
  checkRules(
    settings.bindings.map((binding) => ({ binding, refused: [] })),
    tree,
    inFile,
    issues,
    handlers
  )
  return settings
}

const fleetOf = ({ controlTimeoutMs: controlTimeout, ...fleet }: typeof Settings.Fleet.Type): Fleet.Settings => ({
  ...fleet,
  controlTimeout
})

const auditOf = ({ timeoutMs: timeout, ...audit }: typeof Settings.Audit.Type): Audit.Settings => ({
  ...audit,
  timeout
})

/** Decodes one binding. Undefined when the schema refuses a part of it. Paths begin below the binding. */
export const one = (
  name: string,
  tree: Node.Node,
  issues: Issues.Issues,
  handlers?: Handlers<unknown>
): BindingSettings.BindingSettings | undefined => {
  const readable = withoutRefused(name, tree, [], issues)
  if (readable !== undefined) checkRules([readable], tree, () => [], issues, handlers)
  return readable === undefined || readable.refused.length > 0 ? undefined : readable.binding
}

const bindingsPath = ["eventbus", "bindings"]
const inFile = (name: string): Node.Path => [...bindingsPath, name]

const partial = (tree: Node.Node, issues: Issues.Issues, handlers: Handlers<unknown> | undefined): void => {
  const bindings = Node.child(Node.child(tree, "eventbus"), "bindings")
  if (bindings?._tag !== "Section") return
  checkAliases(tree, issues)
  const readable = bindings.entries.flatMap(
    ({ key, value }) => withoutRefused(key, value, [...bindingsPath, key], Issues.make()) ?? []
  )
  checkRules(readable, tree, inFile, issues, handlers)
}

/** Decodes a binding without its refused parts; undefined when it is not a section. */
const withoutRefused = (
  name: string,
  node: Node.Node,
  path: Node.Path,
  issues: Issues.Issues
): SettingRules.PartialBinding | undefined => {
  const decoded = decodeBinding(node, path, issues)
  if ("value" in decoded) return { binding: BindingSettings.complete(name, decoded.value), refused: [] }
  if (node._tag !== "Section") return undefined
  const refused = decoded.refused.map((each) => Shape.optionalPart(bindingShape, each))
  const readable = refused.reduce(
    (rest, part) => (isRequired(part) ? assign(rest, part, placeholder(node)) : without(rest, part)),
    node as Node.Node
  )
  const again = decodeBinding(readable, [], Issues.make())
  return "value" in again ? { binding: BindingSettings.complete(name, again.value), refused } : undefined
}

const bindingShape = Shape.make(Settings.Binding.ast)

const isRequired = ([key]: Node.Path): boolean => key === "topic" || key === "groupId"

/** Stands for a refused value of a required key. */
const placeholder = ({ source, offset }: Node.Node): Node.Scalar => ({
  _tag: "Scalar",
  source,
  offset,
  value: "refused"
})

const checkRules = (
  readable: ReadonlyArray<SettingRules.PartialBinding>,
  tree: Node.Node,
  prefix: (name: string) => Node.Path,
  issues: Issues.Issues,
  handlers: Handlers<unknown> | undefined
): void => {
  report(readable, tree, prefix, issues)
  if (handlers === undefined) return
  for (const { binding, refused } of readable) {
    for (const { path, found, allowed } of HandlerChecks.problems(binding, handlers)) {
      if (!RuleInputs.dependsOnRefused(path, refused))
        add([...prefix(binding.name), ...path], found, allowed, tree, issues)
    }
  }
}

const report = (
  readable: ReadonlyArray<SettingRules.PartialBinding>,
  tree: Node.Node,
  prefix: (name: string) => Node.Path,
  issues: Issues.Issues
): void => {
  for (const { index, path, found, allowed } of SettingRules.problems(readable)) {
    add([...prefix(readable[index]!.binding.name), ...path], found, allowed, tree, issues)
  }
}

/** In a file with clusters, every binding must name one of them, and so must the fleet and the audit log. */
const checkAliases = (tree: Node.Node, issues: Issues.Issues): void => {
  const eventbus = Node.child(tree, "eventbus")
  const clusters = Node.child(eventbus, "clusters")
  const bindings = Node.child(eventbus, "bindings")
  if (clusters?._tag !== "Section" || bindings?._tag !== "Section") return
  const known = clusters.entries.map(({ key }) => key)
  const naming = [
    ...bindings.entries.map(({ key, value }) => ({ path: [...bindingsPath, key], value })),
    ...["fleet", "audit"].flatMap((key) => {
      const value = Node.child(eventbus, key)
      return value?._tag === "Section" ? [{ path: ["eventbus", key], value }] : []
    })
  ]
  for (const { path, value } of naming) {
    const cluster = Node.child(value, "cluster")
    const alias = cluster === undefined ? "default" : cluster._tag === "Scalar" ? cluster.value : undefined
    if (typeof alias !== "string" || known.includes(alias)) continue
    const allowed =
      known.length === 0
        ? "a cluster in eventbus.clusters"
        : `one of the clusters ${known.join(", ")}${Names.hint(alias, known)}`
    add([...path, "cluster"], JSON.stringify(alias), allowed, tree, issues)
  }
}

/** Adds an issue with the location of its path, or of the nearest node above it. */
const add = (path: Node.Path, found: string, allowed: string, tree: Node.Node, issues: Issues.Issues): void => {
  let node: Node.Node | undefined = tree
  let nearest = tree
  for (const key of path) {
    node = Node.child(node, key)
    nearest = node ?? nearest
  }
  // The message does not show the content of a variable.
  const isVariable = node?._tag === "Scalar" && node.template !== undefined
  issues.add(path, isVariable ? Node.show(node!) : found, allowed, Node.sourceLocation(nearest))
}
