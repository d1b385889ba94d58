/**
 * Draws a scenario of order per key from a seed: a base, and by chance what is added to it. Additions draw from sources of their own, so the base of a seed stays the same. Nothing is
 * added to a calm one.
 */
import { withDecisions } from "./decisions.ts"
import { withDeploys, withQuickRestarts } from "./deploys.ts"
import { drawPlain, isCalm, type Nature } from "./order.ts"
import { withDeletions, withGrowth, withMadeRetryTopics } from "./orderTopics.ts"
import { withOtherGroup } from "./otherGroup.ts"
import * as Random from "./random.ts"
import type { Scenario } from "./Scenario.ts"

export const drawOrder = (seed: number): Scenario => {
  const random = Random.make(seed ^ 0x3c6ef372)
  const nature = random.weighted([
    [2, "calm"],
    [3, "gentle"],
    [5, "rough"]
  ] as const)
  const scenario = drawPlain(random, seed, nature)
  return isCalm(scenario) ? scenario : withDecisions(withAdditions(scenario, Random.make(seed ^ 0x1f83d9ab), nature))
}

type Addition = (scenario: Scenario, random: Random.Random, nature: Nature) => Scenario

const additions: ReadonlyArray<readonly [probability: number, addition: Addition]> = [
  [0.08, withOtherGroup],
  [0.1, withGrowth],
  [0.12, withDeploys],
  [0.08, withQuickRestarts],
  [0.12, withDeletions],
  [0.12, withMadeRetryTopics]
]

const withAdditions = (scenario: Scenario, random: Random.Random, nature: Nature): Scenario =>
  additions.reduce(
    (drawn, [probability, addition]) => (random.happens(probability) ? addition(drawn, random, nature) : drawn),
    scenario
  )
