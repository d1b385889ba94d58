/**
 * Rules about replays by operators (rulings 61 and 70): the group's own dead letters alone, each once, with true headers, and none lost.
 */
import type { Copy } from "../history/copies.ts"
import * as Copies from "../history/copies.ts"
import type { LetterState, StoredCopy } from "../history/History.ts"
import type { Ledger } from "../history/Ledger.ts"
import { ownHeaders } from "../scenario/plannedRecords.ts"
import { mainTopics } from "../scenario/retries.ts"
import type { BindingPlan } from "../scenario/Scenario.ts"
import { on, type Rule } from "./Rule.ts"

/** A copy that a replay publishes is one of a dead letter of the group, and says so. */
const replayed: Rule["check"] = on("Replayed", ({ copy }, ledger) => {
  const { id } = copy
  const replays = Copies.replaysOf(copy)
  const [first] = ledger.logs.copiesById.get(id) ?? []
  if (first === undefined || ledger.logs.letters.count(id, replays - 1) === 0)
    return `a replay publishes ${id} for the ${replays}. time, and its group has no such dead letter`
  const plan = ledger.planOf(first.binding)
  if (replays > plan.maxReplays) return `${id} is replayed for the ${replays}. time, and ${plan.maxReplays} are allowed`
  const problem = untrue(copy, plan, first.plan.key)
  return problem === undefined ? undefined : `the replayed copy of ${id} ${problem}`
})

const untrue = (copy: Copy, plan: BindingPlan, key: string | null): string | undefined => {
  const group = copy.headers.get("replay-group")
  if (group !== plan.groupId) return `is for ${group}, and ${plan.groupId} replays it`
  const userHeaders = Object.entries(ownHeaders(copy.id)).map(([name, value]) => `${name}=${value}`)
  if (copy.userHeaders.join() !== userHeaders.join()) return `has headers ${copy.userHeaders.join()}`
  if (!mainTopics(plan).includes(copy.topic) && Copies.ownerOf(copy) !== plan.groupId) return "has no mark of its group"
  if (copy.repeated.length > 0) return `has the header ${copy.repeated[0]} twice`
  if (copy.key !== key) return `has key ${copy.key}, and its record has ${key}`
  if ([...copy.headers.keys()].some((name) => name.startsWith("dlt-") || /^tier\d/.test(name)))
    return "has headers of a dead letter"
  return undefined
}

/** A dead letter is replayed once, whatever crashes and whoever else replays. */
const once: Rule["check"] = on("Stored", ({ copies }, ledger) => {
  const { letters } = ledger.logs
  // A broker that duplicates a batch duplicates replays as well.
  if (ledger.scenario.faults.faults.some(({ effect }) => effect._tag === "Duplicate")) return undefined
  const own = copies.filter(
    ({ copy, isReadable, isReplay }) =>
      isReplay && isReadable && ledger.logs.foreignGroup(copy.headers.get("replay-group")) === undefined
  )
  for (const [index, { copy }] of own.entries()) {
    const before = Copies.replaysOf(copy) - 1
    const isSame = (other: StoredCopy) => other.copy.id === copy.id && Copies.replaysOf(other.copy) === before + 1
    const made = letters.replaysOf(copy.id, before) + own.slice(0, index).filter(isSame).length
    if (made >= letters.count(copy.id, before)) return `${copy.id} is replayed for the ${before + 1}. time again`
  }
  return undefined
})

/** A copy knows how often its record was replayed, and believes no record that only claims it. */
const counts: Rule["check"] = on("Sent", ({ process, copy }, ledger) => {
  const source = ledger.sources.of(process, copy)
  if (source === undefined || source.record.replays === Copies.replaysOf(copy)) return undefined
  return `the copy of ${copy.id} says ${Copies.replaysOf(copy)} replays, and there were ${source.record.replays}`
})

/** At the end each dead letter waits, or its copy is there. */
const dealtWith: Rule["check"] = on("Ended", ({ remains }, ledger) => {
  for (const { name, handlesLetters } of ledger.scenario.bindings) {
    const { reported, replayed } = ledger.logs.letters.sums(name)
    if (reported > replayed) return `replays of ${name} reported ${reported} copies, and there are ${replayed}`
    // A handler of the strategy deals with letters that nobody replays.
    const problem = handlesLetters ? undefined : accounted(remains.letters.get(name) ?? [], ledger)
    if (problem !== undefined) return problem
  }
  return undefined
})

const accounted = (letters: ReadonlyArray<LetterState>, ledger: Ledger): string | undefined => {
  const dealt = Map.groupBy(
    letters.filter(({ at, state }) => state === "dealt-with" && !ledger.logs.letters.isDiscarded(at)),
    ({ id, replays }) => `${id} ${replays}`
  )
  for (const same of dealt.values()) {
    const { id, replays } = same[0]!
    const copies = ledger.logs.letters.replaysOf(id, replays)
    if (copies < same.length)
      return `${same.length} dead letters of ${id} count as replayed, and there are ${copies} copies`
  }
  return undefined
}

export const replayRules: ReadonlyArray<Rule> = [
  { name: "replayed", check: replayed },
  { name: "replayed-once", check: once },
  { name: "replay-counts", check: counts },
  { name: "dealt-with", check: dealtWith }
]
