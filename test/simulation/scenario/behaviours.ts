/**
 * Draws how the handling of a record goes.
 */
import type * as Random from "./random.ts"
import type { Behaviour, BindingPlan, Route } from "./Scenario.ts"

const routeOf = (random: Random.Random): Route =>
  random.pick<Route>([
    { _tag: "Next" },
    { _tag: "Tier", tier: random.between(1, 4) },
    { _tag: "After", millis: random.pick([0, 3_000, 100_000]) }
  ])

export const drawBehaviour = (random: Random.Random, plan: BindingPlan): Behaviour => {
  const millis = random.weighted([
    [6, 0],
    [3, 20],
    [1, 400],
    [0.3, 4_000]
  ] as const)
  const how = random.pick(["fail", "die", "throw", "interrupt"] as const)
  // Each such call takes its whole processing budget. With tiers, a record that never ends would outlast the run.
  const stuckCalls =
    plan.tiers.length > 0 || plan.breaker !== undefined
      ? random.between(1, 3)
      : random.pick([1, Number.POSITIVE_INFINITY])
  return random.weighted<Behaviour>([
    [60, { _tag: "Fine", millis }],
    [6, { _tag: "Flaky", failures: random.between(1, plan.onExhausted === "halt" ? 6 : 3), how, millis }],
    // A record that always fails would keep a breaker open for ever.
    [
      plan.onExhausted === "halt" || plan.breaker !== undefined ? 0 : 3,
      { _tag: "Broken", how: how === "interrupt" ? "die" : how, millis }
    ],
    [4, { _tag: "Busy", failures: random.between(1, 4), route: routeOf(random), millis }],
    [2, { _tag: "Rejected" }],
    [2, { _tag: "Ignorable" }],
    [0.5, { _tag: "Alarming" }],
    [2, { _tag: "Undecodable" }],
    [plan.onExhausted === "halt" ? 0 : 0.2, { _tag: "Stuck", calls: stuckCalls }],
    [0.3, { _tag: "Stubborn", millis: random.pick(stubbornMillis(plan)) }]
  ])
}

/** A batch with two long records would always exceed its budget and keep a breaker open for ever. */
const stubbornMillis = ({ listener, breaker }: BindingPlan): readonly [number, ...Array<number>] =>
  listener === "whole-batch" && breaker !== undefined ? [1_000, 2_000, 3_000] : [1_000, 12_000, 25_000]
