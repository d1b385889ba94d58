/**
 * The part of a history that concerns one service: what its processes did, what its groups committed, and what happened to the cluster. Each service is judged by
 * itself, as if it were alone.
 */
import { retryGroups } from "../scenario/retries.ts"
import type { Scenario } from "../scenario/Scenario.ts"
import type { Entry } from "./History.ts"

/** The numbers of the services of a scenario. */
export const servicesOf = ({ bindings }: Scenario): ReadonlyArray<number> => [
  ...new Set(bindings.map(({ service }) => service))
]

/** The scenario with the bindings of a service alone. */
export const scenarioOf = (scenario: Scenario, service: number): Scenario => ({
  ...scenario,
  bindings: scenario.bindings.filter((plan) => plan.service === service)
})

/** Whether an entry concerns a service. */
export const concerning = (scenario: Scenario, service: number): ((entry: Entry) => boolean) => {
  const own = scenario.bindings.filter((plan) => plan.service === service)
  const names = new Set(own.map(({ name }) => name))
  const groups = new Set(own.flatMap((plan) => [plan.groupId, ...retryGroups(plan)]))
  const processes = new Map<string, boolean>()
  const isOwn = (process: string): boolean => {
    const known = processes.get(process)
    if (known !== undefined) return known
    // `p2.1` is the first life of the second process.
    const number = Number(process.slice(1, process.indexOf(".")))
    const answer = scenario.processes[number - 1]?.service === service
    processes.set(process, answer)
    return answer
  }
  return (entry) => {
    if ("process" in entry) return isOwn(entry.process)
    if (entry._tag === "Published" || entry._tag === "Observed") return names.has(entry.binding)
    return entry._tag === "Broker" && "groupId" in entry.entry ? groups.has(entry.entry.groupId) : true
  }
}
