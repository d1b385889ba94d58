/**
 * Checks `origins`: the topics beside its main topic that a binding's replays may write to.
 */
import * as Kinds from "../../Kinds.ts"
import * as TopicName from "../../TopicName.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import { shown } from "../base/shown.ts"

/** A setting that cannot be used. */
interface Problem {
  readonly path: string
  readonly found: string
  readonly allowed: string
}

/** Every name that no replay may write to, whatever the bindings are. */
export const problems: Kinds.Kind = Kinds.listOf((path, topic) => {
  const reason = reasonAgainst(topic)
  return reason === undefined ? [] : [{ path, found: shown(topic), allowed: reason }]
}, "a list of topic names")

const reasonAgainst = (topic: unknown): string | undefined => {
  if (typeof topic !== "string") return "a topic name"
  const illegal = TopicName.illegal(topic)
  if (illegal !== undefined) return `a legal topic name: ${illegal}`
  if (topic.startsWith("__")) return "a topic that does not begin with '__': those are Kafka's own"
  if (topic.endsWith(DerivedNames.journal("")))
    return `a topic that does not end in '${DerivedNames.journal("")}': those are journals of replays`
  return undefined
}

/** The origins of a binding among the topics that it, or another one, derives: no replay writes to those. */
export const among = (
  {
    deadLetter
  }: { readonly deadLetter: { readonly settings: { readonly origins?: ReadonlyArray<string> | undefined } } },
  derived: ReadonlyArray<string>,
  whose: string
): ReadonlyArray<Problem> =>
  (deadLetter.settings.origins ?? [])
    .filter((topic) => derived.includes(topic))
    .map((topic) => ({
      path: "deadLetter.origins",
      found: shown(topic),
      allowed: `topics that are no retry or dead letter topic or journal ${whose}`
    }))
