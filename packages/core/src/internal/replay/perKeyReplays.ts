/**
 * Replays of a binding with `orderingMode: "PER_KEY"`: a dead letter goes back to the topic that it came from, behind the later records of its key. In a retry topic it would have
 * no place in the order of its key.
 */
import type { DeadLetters } from "../../Replay.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Arguments from "./arguments.ts"

/** The text of the refusal: such a binding takes no retry tier. */
export const allowed =
  'no retry tier with orderingMode "PER_KEY": a dead letter there has no place in the order of its key; replay it to the topic that it came from'

/** The command, or a refusal. */
export const toTier = (
  { orderingMode }: Pick<BindingDefinition<unknown>, "orderingMode">,
  replayToTier: DeadLetters["replayToTier"]
): DeadLetters["replayToTier"] =>
  orderingMode === "PER_KEY" ? (tier) => Arguments.refuse("replayToTier", "tier", tier, allowed) : replayToTier
