/**
 * Rules about transactional bindings: results and offsets become visible together, or not at all.
 */
import type { Output } from "../history/History.ts"
import type { Ledger } from "../history/Ledger.ts"
import { on, type Rule } from "./Rule.ts"

/** A reader of committed records sees the output of each handled record once, and no other output. */
const visible = (binding: string, outputs: ReadonlyArray<Output>, ledger: Ledger): string | undefined => {
  const published = Map.groupBy(outputs, ({ id }) => id)
  const repeats = ledger.scenario.faults.faults.some(({ effect }) => effect._tag === "Duplicate")
  for (const [id, way] of ledger.logs.copiesById) {
    const [first] = way
    // A record that compaction removed may have been handled before or not.
    if (first === undefined || first.binding !== binding || first.removed !== "no") continue
    const handled = way.filter(({ state }) => state === "done").length
    const found = published.get(id)?.length ?? 0
    if (found !== handled && !(repeats && found > handled))
      return `${id} was handled ${handled} times for good, and its output is there ${found} times`
  }
  return undefined
}

/** The rule while the binding runs: no reader sees a part of a transaction, whatever crashes and rebalances happen. */
const observed: Rule["check"] = on("Observed", ({ binding, outputs }, ledger) => visible(binding, outputs, ledger))

/** A reader of committed records never sees one disappear, or another one before it. */
const stable: Rule["check"] = on("Observed", ({ binding, outputs }, ledger) => {
  const now = Map.groupBy(outputs, ({ partition }) => partition)
  for (const [partition, before] of Map.groupBy(ledger.observed.get(binding) ?? [], (output) => output.partition)) {
    const at = before.findIndex(({ id }, index) => now.get(partition)?.[index]?.id !== id)
    if (at >= 0) return `output ${at} in partition ${partition} of ${binding} was ${before[at]?.id}, and is another one`
  }
  return undefined
})

/** The rule at the end. */
const outputs: Rule["check"] = on("Ended", ({ remains }, ledger) => {
  for (const { name, listener } of ledger.scenario.bindings) {
    if (listener !== "transactional") continue
    const own = remains.outputs.filter(({ binding }) => binding === name)
    const problem = visible(name, own, ledger)
    if (problem !== undefined) return problem
  }
  return undefined
})

export const transactionRules: ReadonlyArray<Rule> = [
  { name: "observed", check: observed },
  { name: "stable", check: stable },
  { name: "outputs", check: outputs }
]
