/**
 * Draws a scenario from a seed: a base, and by chance what is added to it. Additions draw from a source of their own, so the base of a seed stays the same.
 */
import { drawBase } from "./base.ts"
import * as Random from "./random.ts"
import type { Scenario } from "./Scenario.ts"
import { withSecondService } from "./secondService.ts"

export const generate = (seed: number): Scenario => {
  const base = drawBase(seed)
  const random = Random.make(seed ^ 0x5f3759df)
  return random.happens(0.2) ? withSecondService(base, random) : base
}
