/**
 * The deliveries that a failing record gets, as the settings of its binding say.
 */
import type { NextDestination, Tiers } from "../retry/tiers.ts"
import type { BindingDefinition } from "./bindingDefinition.ts"

/** In a batch that goes on, a retried record would come back alone, out of its batch (ruling 53). */
const skipsTiers = ({
  listenerType,
  batchFailureStrategy
}: Pick<BindingDefinition<unknown>, "listenerType" | "batchFailureStrategy">): boolean =>
  listenerType === "BATCH" && batchFailureStrategy === "DLQ_AND_CONTINUE"

/** Where a record goes next after its delivery `attempt` in tier `tier` (0 is the main topic) failed. */
export const nextDestination = (
  definition: Pick<BindingDefinition<unknown>, "listenerType" | "batchFailureStrategy" | "tiers">,
  { tier, attempt }: { readonly tier: number; readonly attempt: number },
  destination: Parameters<Tiers["nextDestination"]>[2]
): NextDestination =>
  skipsTiers(definition) ? "exhausted" : definition.tiers.nextDestination(tier, attempt, destination)

/** Handler calls that a record gets over all tiers, while every one of them fails and no rule says otherwise. */
export const mostAttempts = (definition: BindingDefinition<unknown>): number => {
  const { retry, tiers } = definition
  let deliveries = 1
  for (let tier = 1; tier <= (skipsTiers(definition) ? 0 : tiers.count); tier++) deliveries += tiers.deliveries(tier)
  return deliveries * retry.blocking.maxAttempts
}
