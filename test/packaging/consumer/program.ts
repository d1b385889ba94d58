/** A user's view of the packages: names of the index, names of single modules, closed internals. */
import { Partitioner } from "@eventbus/core"
import { partitionFor } from "@eventbus/core/Partitioner"

const key = new TextEncoder().encode("order-1")
if (Partitioner.partitionFor(key, 12) !== partitionFor(key, 12)) throw new Error("two copies of one module disagree")

const internal: string = "@eventbus/core/internal/partition/offsetTracker"
const outcome = await import(internal).then(
  () => "open",
  (error: { readonly code?: string }) => error.code
)
if (outcome !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw new Error(`internals are not closed: ${outcome}`)
console.log(`the program runs on the published packages: partition ${partitionFor(key, 12)}`)
