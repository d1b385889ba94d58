/**
 * All rules of the simulator, in the order in which they are checked.
 */
import { breakerRules } from "./breakerRules.ts"
import { callRules } from "./callRules.ts"
import { groupRules } from "./groupRules.ts"
import { outcomeRules } from "./outcomeRules.ts"
import { foreignRules, markRules } from "./ownerRules.ts"
import type { Rule } from "./Rule.ts"
import { replayRules } from "./replayRules.ts"
import { retryRules } from "./retryRules.ts"
import { transactionRules } from "./transactionRules.ts"

export const rules: ReadonlyArray<Rule> = [
  ...foreignRules,
  ...callRules,
  ...groupRules,
  ...outcomeRules,
  ...retryRules,
  ...transactionRules,
  ...replayRules,
  ...breakerRules,
  ...markRules
]
