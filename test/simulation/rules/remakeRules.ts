/**
 * Rules of a run in which topics are deleted and made again: offsets and idempotency keys of a former topic make no record of the new one ignored (rulings 77 and 85).
 */
import type { Entry } from "../history/History.ts"
import type { Incarnations } from "../history/Incarnations.ts"

interface RemakeRule {
  readonly name: string
  /** Returns a sentence when the entry breaks the rule. */
  readonly check: (entry: Entry, incarnations: Incarnations) => string | undefined
}

/** A record of the topic that is there at the end is handled, dead-lettered or dropped on purpose, unless its copy went with a retry topic. */
const ignored: RemakeRule["check"] = (entry, { published, done, lostCopies }) => {
  if (entry._tag !== "Ended") return undefined
  const deadLetters = new Set(entry.remains.deadLetters.map(({ value }) => value.replace(/^!/, "")))
  for (const { id, behaviour } of published.values()) {
    if (done.has(id) || deadLetters.has(id) || lostCopies.has(id) || behaviour._tag === "Ignorable") continue
    return `${id} was published to the topic that is there now, and nobody handled it`
  }
  return undefined
}

/** The topics that are there at the end are read to their ends. */
const settling: RemakeRule["check"] = (entry) => {
  const first = entry._tag === "Ended" ? entry.remains.lagging[0] : undefined
  return first && `${first.partition} is committed to ${first.committed}, and its log ends at ${first.logEnd}`
}

/** Nothing is left after everything has stopped (ruling 36). */
const leftovers: RemakeRule["check"] = (entry) => {
  if (entry._tag === "Ended") return entry.remains.leftovers[0]
  return entry._tag === "Closed" && entry.fibers > 0 ? `${entry.fibers} fibers run on after the end` : undefined
}

export const remakeRules: ReadonlyArray<RemakeRule> = [
  { name: "ignored", check: ignored },
  { name: "settling", check: settling },
  { name: "leftovers", check: leftovers }
]
