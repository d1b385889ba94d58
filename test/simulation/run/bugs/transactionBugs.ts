/**
 * Planted bugs about transactions: a part of one becomes visible without the rest.
 */
import { some } from "../sabotage.ts"
import type { PlantedBug } from "./PlantedBug.ts"

const isTransactional = some(({ listener }) => listener === "transactional")

export const transactionBugs: ReadonlyArray<PlantedBug> = [
  {
    title: "commits the offsets before its transaction",
    seenBy: ["observed", "commits", "outputs"],
    needs: isTransactional,
    sabotage: { offsets: "before" }
  },
  {
    title: "commits the offsets after its transaction",
    seenBy: ["observed", "outputs"],
    needs: (scenario) => isTransactional(scenario) && scenario.transactionLatencyMillis > 0,
    sabotage: { offsets: "after" }
  },
  {
    title: "publishes the output outside its transaction",
    seenBy: ["observed", "outputs"],
    needs: isTransactional,
    sabotage: { outputs: "outside" }
  }
]
