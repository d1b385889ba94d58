/**
 * Draws a scenario from a seed: a base, and by chance what is added to it. Additions draw from a source of their own, so the base of a seed stays the same.
 */
import { drawBase } from "./base.ts"
import { withOperators, withReadings } from "./figures.ts"
import * as Random from "./random.ts"
import { withRemakes } from "./remakes.ts"
import { withReplays } from "./replays.ts"
import type { Scenario } from "./Scenario.ts"
import { withSecondService } from "./secondService.ts"
import { withSecondTopic } from "./secondTopic.ts"
import { withObserver, withTransactions } from "./transactions.ts"

export const generate = (seed: number): Scenario => {
  const random = Random.make(seed ^ 0x5f3759df)
  let scenario = drawBase(seed)
  const topics = Random.make(seed ^ 0x2545f491)
  if (topics.happens(0.1)) {
    const both = withSecondTopic(scenario, topics)
    return topics.happens(0.3) ? withReadings(both, topics) : both
  }
  if (random.happens(0.08)) {
    const remade = withRemakes(scenario, random)
    return random.happens(0.3) ? withReadings(remade, random) : remade
  }
  if (random.happens(0.2)) scenario = withSecondService(scenario, random)
  if (random.happens(0.1)) scenario = withTransactions(scenario, random)
  if (random.happens(0.15)) scenario = withReplays(scenario, random)
  scenario = withObserver(scenario, random)
  if (!random.happens(0.3)) return scenario
  return withReadings(random.happens(0.7) ? withOperators(scenario, random) : scenario, random)
}
