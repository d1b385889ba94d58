/**
 * Rules about services that share retry and dead letter topics (ruling 71).
 */
import * as Copies from "../history/copies.ts"
import { on, type Rule } from "./Rule.ts"

/** No group handles the copies of another one. */
const foreignCalls: Rule["check"] = on("Called", ({ process, binding, partition, offsets }, ledger) => {
  for (const offset of offsets) {
    const owner = ledger.logs.ownerOfForeign(partition, offset)
    if (owner !== undefined)
      return `${process}: ${binding} handles ${partition} at ${offset}, which belongs to ${owner}`
  }
  return undefined
})

/** A record of another group is passed over, whatever it is. */
const foreignResults: Rule["check"] = on("Connector", ({ process, event }, ledger) => {
  if (event._tag !== "Settled" || event.settlement === "Skipped") return undefined
  const partition = `${event.topic}/${event.partition}`
  const owner = ledger.logs.ownerOfForeign(partition, event.record.offset)
  return owner === undefined
    ? undefined
    : `${process}: ${partition} at ${event.record.offset} is ${event.settlement}, and belongs to ${owner}`
})

/** Every copy carries the mark of the group that publishes it. */
const marks: Rule["check"] = on("Sent", ({ process, copy }, ledger) => {
  const source = ledger.sources.of(process, copy)
  if (source === undefined) return undefined
  const { groupId } = ledger.planOf(source.record.binding)
  const owner = Copies.ownerOf(copy)
  return owner === groupId
    ? undefined
    : `the copy of ${copy.id} to ${copy.topic} is marked as one of ${owner ?? "nobody"}, and ${groupId} publishes it`
})

/** Checked before the rules that know the records of one group alone. */
export const foreignRules: ReadonlyArray<Rule> = [
  { name: "foreign-calls", check: foreignCalls },
  { name: "foreign-results", check: foreignResults }
]

export const markRules: ReadonlyArray<Rule> = [{ name: "marks", check: marks }]
