/**
 * The part of a history that concerns one binding with order per key. Two groups may read one topic, and share its retry and dead letter topics: each is judged as if it were alone.
 */
import type { BindingPlan, Scenario } from "../scenario/Scenario.ts"
import * as Copies from "./copies.ts"
import type { Entry } from "./History.ts"

/** Answers what a binding has to do with an entry; undefined for nothing. */
export const viewOf = (scenario: Scenario, plan: BindingPlan): ((entry: Entry) => Entry | undefined) => {
  if (scenario.bindings.length === 1) return (entry) => entry
  const isOwn = (process: string): boolean => serviceOf(scenario, process) === plan.service
  return (entry) => {
    if ("process" in entry && !isOwn(entry.process)) return undefined
    if ("binding" in entry && entry.binding !== plan.name) return undefined
    switch (entry._tag) {
      case "Connector":
        return entry.event.binding === plan.name ? entry : undefined
      case "Sent":
        return Copies.ownerOf(entry.copy) === plan.groupId ? entry : undefined
      case "Stored":
        return { ...entry, copies: entry.copies.filter(({ copy }) => Copies.ownerOf(copy) === plan.groupId) }
      case "Locked":
        return { ...entry, locks: entry.locks.filter(({ groupId }) => groupId === plan.groupId) }
      case "Broker":
        return "groupId" in entry.entry && entry.entry.groupId !== plan.groupId ? undefined : entry
      default:
        return entry
    }
  }
}

/** `p2.1` is the first life of the second process. */
const serviceOf = ({ processes }: Scenario, process: string): number | undefined =>
  processes[Number(process.slice(1, process.indexOf("."))) - 1]?.service
