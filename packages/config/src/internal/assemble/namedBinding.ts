/**
 * Decodes a binding that says its own name, as the body of a request does.
 */
import type { BindingSettings } from "../../BindingSettings.ts"
import type { Handlers } from "../../Handlers.ts"
import * as Settings from "../../Settings.ts"
import { canonical } from "../files/canonical.ts"
import * as Shape from "../schema/shape.ts"
import type { Issues } from "../tree/issues.ts"
import * as Node from "../tree/node.ts"
import * as Assemble from "./assemble.ts"

const shape = Shape.make(Settings.Binding.ast)

/** Undefined when something is refused. Paths begin at the top of the body. */
export const decode = (
  node: Node.Node,
  issues: Issues,
  handlers: Handlers<unknown> | undefined
): BindingSettings | undefined => {
  if (node._tag !== "Section") {
    issues.add([], Node.show(node), "an object with the name and the settings of a binding")
    return undefined
  }
  const name = nameOf(node, issues)
  const rest = { ...node, entries: node.entries.filter((entry) => entry.key !== "name") }
  // A file may have such keys at its top. A request has no use for them.
  for (const { key } of rest.entries)
    if (key.startsWith("x-")) issues.add([key], "an unknown key", "a key of a binding")
  const tree = canonical(rest, shape, issues)
  const isHandlerKnown = name !== undefined || Node.child(tree, "handler") !== undefined
  return Assemble.one(name ?? "refused", tree, issues, isHandlerKnown ? handlers : undefined)
}

const nameOf = (node: Node.Section, issues: Issues): string | undefined => {
  const [first, ...others] = node.entries.filter(({ key }) => key === "name")
  if (first?.value._tag === "Scalar" && typeof first.value.value === "string" && first.value.value.trim() !== "") {
    if (others.length === 0) return first.value.value
    issues.add(["name"], "a duplicate", "each key once")
  } else {
    issues.add(["name"], first === undefined ? "nothing" : Node.show(first.value), "the name of the binding, a text")
  }
  return undefined
}
