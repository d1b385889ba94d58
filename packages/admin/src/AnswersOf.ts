/**
 * The answers of the admin API, made of what the commands of a binding say. For tools that ask a cluster without a running process, such as `eventbus dlt`, so that their answers
 * are those of the API; `commandFleet` commands a fleet, as the API does. With `payload` false, nothing in them quotes a record.
 *
 * ```ts
 * import { AnswersOf } from "@eventbus/admin"
 * import { Binding } from "@eventbus/core"
 * import { Effect } from "effect"
 *
 * const orders = Binding.make("orders", { topic: "orders", groupId: "billing", handler: ({ record }) => Effect.log(record.topic) })
 *
 * export const groups = Effect.gen(function* () {
 *   const letters = yield* Binding.deadLetters(orders)
 *   return AnswersOf.groupsOf(yield* letters.groups(), false)
 * })
 * ```
 */
export { auditPageOf } from "./internal/audit/auditOperations.ts"
export { transformedOf } from "./internal/difference/transformedOf.ts"
export { viewOf as fleetViewOf } from "./internal/fleet/fleetAnswersOf.ts"
export { run as commandFleet } from "./internal/fleet/fleetCommand.ts"
export { groupsOf, letterOf, pageOf, reportOf } from "./internal/letterAnswers.ts"
export { planOf, receiptOf, runsOf } from "./internal/runs/runAnswers.ts"
export { targetOf } from "./internal/runs/selectionTarget.ts"
