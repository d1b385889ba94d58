/** The alias of the cluster that `CurrentTransaction` belongs to. Undefined where a program gives a transaction of its own. */
import * as Context from "effect/Context"

export const TransactionCluster = Context.Reference<string | undefined>("@eventbus/core/TransactionCluster", {
  defaultValue: () => undefined
})
