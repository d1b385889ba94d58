/** The alias of the cluster that `CurrentTransaction` belongs to. Undefined where a program gives a transaction of its own. */
import { Context } from "effect"

export const TransactionCluster = Context.Reference<string | undefined>("@eventbus/core/TransactionCluster", {
  defaultValue: () => undefined
})
