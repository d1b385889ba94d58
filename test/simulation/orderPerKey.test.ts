/** Order per key through retry topics, simulated: PKO-01 to PKO-03 in clean runs, and each rule of the protocol switched off. */
import { assert, describe, it } from "vitest"
import { describeRun } from "./report.ts"
import { orderBugs } from "./run/bugs/orderBugs.ts"
import type { PlantedBug } from "./run/bugs/PlantedBug.ts"
import { type Outcome, simulate } from "./run/simulate.ts"
import { drawOrder } from "./scenario/generateOrder.ts"

const assertClean = (outcome: Outcome): void => assert.isUndefined(outcome.violation, describeRun(outcome))

describe("simulation of order per key", () => {
  it("scenarios differ: both orders, ack modes and outcomes of dead letters are among fifty seeds", () => {
    const plans = Array.from({ length: 50 }, (_, seed) => drawOrder(seed).bindings[0]!)
    const count = (of: (plan: (typeof plans)[number]) => unknown) => new Set(plans.map(of)).size
    assert.strictEqual(
      count(({ processingOrder }) => processingOrder),
      2
    )
    assert.strictEqual(
      count(({ ackMode }) => ackMode),
      2
    )
    assert.strictEqual(
      count(({ perKey }) => perKey?.onDeadLetter),
      2
    )
    assert.strictEqual(
      count(({ tiers }) => tiers.length),
      3
    )
    assert.strictEqual(
      count(({ otherTopics }) => otherTopics.length),
      2
    )
  })

  it("PKO-01 PKO-02 PKO-03 a clean seed breaks no rule", () => {
    for (let seed = 200; seed < 230; seed++) assertClean(simulate(drawOrder(seed)))
  })
})

/** Number of seeds in which a planted bug must be seen. */
const maxSeeds = 120

const hunt = (bug: PlantedBug): Outcome | undefined => {
  for (let seed = 1, tried = 0; tried < maxSeeds; seed++) {
    const scenario = drawOrder(seed)
    if (bug.needs?.(scenario) === false) continue
    tried++
    const outcome = simulate(scenario, bug)
    if (outcome.violation !== undefined) return outcome
  }
  return undefined
}

describe("PKO-01 PKO-02 a planted bug of order per key is found", () => {
  for (const bug of orderBugs) {
    it(bug.title, () => {
      for (const scenario of bug.directed ?? []) {
        assertClean(simulate(scenario))
        assertSeen(bug, simulate(scenario, bug))
      }
      if (bug.directed === undefined) assertSeen(bug, hunt(bug))
    })
  }
})

const assertSeen = (bug: PlantedBug, outcome: Outcome | undefined): void => {
  assert.isDefined(
    outcome?.violation,
    `not seen in ${bug.directed === undefined ? `${maxSeeds} seeds` : "its scenario"}`
  )
  assert.include(bug.seenBy, outcome?.violation?.rule, outcome && describeRun(outcome))
}
