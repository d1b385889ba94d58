/**
 * The roots `messaging` and `spring.kafka` of a file. All others are somebody else's, except those that look like a slip of these: without the hint the program would run without
 * Kafka, and nobody would know why.
 */
import type * as Shape from "../schema/shape.ts"
import type { Issues } from "../tree/issues.ts"
import * as Names from "../tree/names.ts"
import * as Node from "../tree/node.ts"
import { canonical } from "./canonical.ts"

/** Sections of Spring that this package does not read, and where their settings are instead. */
const elsewhere: ReadonlyMap<string, string> = new Map(
  Object.entries({
    security: "the options `sasl` and `tls` of KafkaJs.layer, in code",
    ssl: "the option `tls` of KafkaJs.layer, in code",
    properties: "the options of KafkaJs.layer, in code",
    clientId: "the option `clientId` of KafkaJs.layer, in code",
    listener: "messaging.kafka.consumer.concurrency, and the settings of MessageConsumer.make",
    template: "Topic.json, and the settings of a send",
    admin: "declareTopics"
  }).flatMap(([key, place]) => Names.spellings(key).map((spelling) => [spelling, place] as const))
)

/** The two roots, in canonical spelling. */
export const rootsOf = (tree: Node.Node, shape: Shape.Shape, issues: Issues): Node.Node => {
  if (tree._tag !== "Section") return canonical(tree, shape, issues)
  const entries = tree.entries.flatMap((entry) => {
    if (entry.key === "messaging") return [entry]
    if (entry.key === "spring") return entry.value._tag === "Section" ? [springOf(entry, entry.value, issues)] : []
    refuseSlip(tree, entry, [], entry.value._tag === "Section" ? "messaging" : undefined, issues)
    if (Node.child(entry.value, "kafka") !== undefined) refuseSlip(tree, entry, [], "spring", issues)
    return []
  })
  return canonical({ ...tree, entries }, shape, issues)
}

const springOf = (entry: Node.Entry, section: Node.Section, issues: Issues): Node.Entry => {
  const entries = section.entries.flatMap((inner) => {
    if (inner.key === "kafka") return [{ ...inner, value: kafkaOf(inner.value, issues) }]
    refuseSlip(section, inner, ["spring"], inner.value._tag === "Section" ? "kafka" : undefined, issues)
    return []
  })
  return { ...entry, value: { ...section, entries } }
}

const kafkaOf = (node: Node.Node, issues: Issues): Node.Node => {
  if (node._tag !== "Section") return node
  const entries = node.entries.filter((entry) => {
    const place = elsewhere.get(entry.key)
    if (place === undefined) return true
    const at = Node.sourceLocation({ source: node.source, offset: entry.offset })
    issues.add(["spring", "kafka", entry.key], "a key that is not read", place, at)
    return false
  })
  return { ...node, entries }
}

/** Refuses a key that is close to the root. */
const refuseSlip = (
  { source }: Node.Section,
  { key, offset }: Node.Entry,
  above: Node.Path,
  root: string | undefined,
  issues: Issues
): void => {
  if (root === undefined || Names.closest(key, [root]) === undefined) return
  const meant = Node.formatPath([...above, root])
  issues.add(
    [...above, key],
    "an unknown key",
    `${meant} (did you mean that?)`,
    Node.sourceLocation({ source, offset })
  )
}
