/** Rules between two settings of messaging. Each is told whenever its own values are valid, whatever else is wrong with the file. */
import * as Issues from "../tree/issues.ts"
import * as Node from "../tree/node.ts"
import * as Decoding from "./decoding.ts"
import { Root } from "./messagingSchema.ts"

type Decoded = (typeof Root)["Type"]

const decoder = Decoding.decoder(Root)

/** The settings of a tree in canonical spelling; undefined where a value is refused. */
export const decode = (tree: Node.Node, issues: Issues.Issues): Decoded | undefined => {
  const decoded = decoder(tree, [], issues)
  const refused = "value" in decoded ? [] : decoded.refused
  // Defaults stand in for what is refused.
  const rest = "value" in decoded ? decoded : decoder(refused.reduce(without, tree), [], Issues.make())
  if ("value" in rest) checkTogether(rest.value, tree, refused, issues)
  return "value" in decoded ? decoded.value : undefined
}

const without = (node: Node.Node, [key, ...below]: Node.Path): Node.Node => {
  if (node._tag !== "Section") return node
  const entries = node.entries.flatMap((entry) => {
    if (entry.key !== key) return [entry]
    return below.length === 0 ? [] : [{ ...entry, value: without(entry.value, below) }]
  })
  return { ...node, entries }
}

const checkTogether = (
  { messaging }: Decoded,
  tree: Node.Node,
  refused: ReadonlyArray<Node.Path>,
  issues: Issues.Issues
): void => {
  const { consumer, retry } = messaging.kafka
  const pathOf = (section: string, key: string) => ["messaging", "kafka", section, key]
  const isValid = (path: Node.Path) => !refused.some((wrong) => wrong.every((key, index) => key === path[index]))
  const refuse = (section: string, keys: readonly [string, string], found: number, allowed: string) => {
    const path = pathOf(section, keys[0])
    if (!isValid(path) || !isValid(pathOf(section, keys[1]))) return
    const node = path.reduce<Node.Node | undefined>(Node.child, tree)
    issues.add(path, `${found} ms`, allowed, node && Node.sourceLocation(node))
  }
  if (retry.maxIntervalMs < retry.initialIntervalMs) {
    const allowed = `initialIntervalMs (${retry.initialIntervalMs} ms) or more`
    refuse("retry", ["maxIntervalMs", "initialIntervalMs"], retry.maxIntervalMs, allowed)
  }
  if (consumer.sessionTimeoutMs < 3 * consumer.heartbeatIntervalMs) {
    const allowed = `three times heartbeatIntervalMs (${3 * consumer.heartbeatIntervalMs} ms) or more`
    refuse("consumer", ["sessionTimeoutMs", "heartbeatIntervalMs"], consumer.sessionTimeoutMs, allowed)
  }
}
