/**
 * Draws a scenario from a seed.
 */
import { FaultPlan } from "@eventbus/testkit"
import * as Chance from "./Chance.ts"
import type {
  Action,
  Behaviour,
  BindingPlan,
  BreakerPlan,
  Outage,
  RecordPlan,
  Route,
  Scenario,
  TierPlan
} from "./Scenario.ts"

export const generate = (seed: number): Scenario => {
  const chance = Chance.make(seed)
  const troubleMillis = chance.between(20, 90) * 1000
  const intensity = chance.weighted([
    [4, 0],
    [3, 0.3],
    [3, 1]
  ])
  const bindings = Array.from(
    {
      length: chance.weighted([
        [4, 1],
        [1, 2]
      ])
    },
    (_, index) => binding(chance, index)
  )
  const processes = topology(chance)
  const actions = [
    ...bindings.flatMap((plan, index) => workload(chance, plan, index, troubleMillis)),
    ...processes.flatMap((_, index) => lifecycle(chance, index, troubleMillis, bindings.length))
  ].sort((a, b) => a.atMillis - b.atMillis)
  return {
    seed,
    interleaving: chance.happens(0.3) ? "shuffled" : "first-come",
    assignment: chance.happens(0.25) ? "eager" : "cooperative-sticky",
    latencyMillis: chance.pick([0, 0, 5, 40]),
    maxRecordsPerChunk: chance.pick([3, 10, 40, 500]),
    bindings,
    processes,
    actions,
    faults: faults(chance, seed, intensity, troubleMillis),
    intensity,
    troubleMillis,
    outage: outage(chance, bindings.length, troubleMillis)
  }
}

const outage = (chance: Chance.Chance, bindings: number, troubleMillis: number): Outage | undefined => {
  if (!chance.happens(0.35)) return undefined
  const fromMillis = chance.between(0, troubleMillis / 2)
  return {
    binding: chance.between(0, bindings - 1),
    fromMillis,
    toMillis: Math.min(troubleMillis, fromMillis + chance.pick([500, 4_000, 20_000]))
  }
}

/** Two to five sessions of each binding, in one to five processes. */
const topology = (chance: Chance.Chance): Scenario["processes"] => {
  let left = chance.between(2, 5)
  const processes: Array<{ readonly concurrency: number }> = []
  while (left > 0) {
    const concurrency = left > 1 && chance.happens(0.3) ? 2 : 1
    processes.push({ concurrency })
    left -= concurrency
  }
  return processes
}

const binding = (chance: Chance.Chance, index: number): BindingPlan => {
  const listener = chance.weighted([
    [5, "single"],
    [2, "batch"],
    [2, "whole-batch"],
    [2, "transactional"]
  ] as const)
  const processingOrder = listener === "single" ? chance.pick(["partition", "key", "unordered"] as const) : "partition"
  const name = index === 0 ? "orders" : "bills"
  const halts = listener !== "whole-batch" && processingOrder === "partition" && chance.happens(0.15)
  const tiers = halts || chance.happens(0.4) ? [] : tiersOf(chance)
  return {
    name,
    topic: name,
    groupId: `${name}-readers`,
    partitions: chance.between(1, 6),
    listener,
    verdict: chance.pick(["from", "these", "none"] as const),
    processingOrder,
    ackMode: chance.pick(["MANUAL_IMMEDIATE", "MANUAL"] as const),
    batchFailureStrategy: chance.pick(["SEEK_TO_FAILED", "DLQ_AND_CONTINUE"] as const),
    onExhausted: halts ? "halt" : "dead-letter",
    membership: chance.happens(0.15) ? "static" : "dynamic",
    maxAttempts: chance.between(1, 4),
    tiers,
    tierConsumer: chance.happens(0.3) ? "separate" : "shared",
    breaker: chance.happens(0.45) ? breakerOf(chance) : undefined,
    maxPollRecords: chance.pick([1, 4, 10]),
    maxInFlight: chance.weighted([
      [3, undefined],
      [1, 1],
      [1, 2],
      [1, 5]
    ] as const),
    maxBufferedRecords: chance.pick([1, 20, 50_000]),
    commitIntervalMillis: chance.pick([0, 200, 2000]),
    maxWaitMillis: chance.pick([100, 1_000, 5_000, 5_000]),
    shutdownTimeoutMillis: chance.pick([2_000, 10_000])
  }
}

/** One to three tiers: a topic for each, one for all, or one tier alone. */
const tiersOf = (chance: Chance.Chance): ReadonlyArray<TierPlan> => {
  const count = chance.between(1, 3)
  const shares = chance.happens(0.3)
  let delayMillis = chance.pick([0, 200, 1_000, 5_000])
  return Array.from({ length: count }, (_, index): TierPlan => {
    if (index > 0 && !shares) delayMillis += chance.pick([1_000, 4_000, 15_000])
    return { delayMillis, maxAttempts: chance.between(1, 3), concurrency: chance.pick([1, 1, 2, 5]) }
  })
}

const breakerOf = (chance: Chance.Chance): BreakerPlan => {
  const windowType = chance.happens(0.7) ? "count" : "time"
  const windowSize = windowType === "count" ? chance.between(1, 8) : chance.pick([2, 10, 30])
  return {
    windowType,
    windowSize,
    minimumCalls: chance.between(1, windowType === "count" ? windowSize : 6),
    failureRate: chance.pick([20, 50, 50, 100]),
    permits: chance.between(1, 3),
    waitMillis: chance.pick([300, 2_000, 8_000]),
    slowMillis: chance.pick([300, 5_000, 60_000]),
    automaticPauseOnOpen: chance.happens(0.6),
    backsOff: chance.happens(0.3),
    probes: chance.happens(0.3)
  }
}

const routeOf = (chance: Chance.Chance): Route =>
  chance.pick<Route>([
    { _tag: "Next" },
    { _tag: "Tier", tier: chance.between(1, 4) },
    { _tag: "After", millis: chance.pick([0, 3_000, 100_000]) }
  ])

const behaviour = (chance: Chance.Chance, plan: BindingPlan): Behaviour => {
  const millis = chance.weighted([
    [6, 0],
    [3, 20],
    [1, 400],
    [0.3, 4_000]
  ] as const)
  const how = chance.pick(["fail", "die", "throw", "interrupt"] as const)
  // Each such call takes its whole processing budget: with tiers, one that never ends would outlast the run.
  const stuckCalls =
    plan.tiers.length > 0 || plan.breaker !== undefined
      ? chance.between(1, 3)
      : chance.pick([1, Number.POSITIVE_INFINITY])
  return chance.weighted<Behaviour>([
    [60, { _tag: "Fine", millis }],
    [6, { _tag: "Flaky", failures: chance.between(1, plan.onExhausted === "halt" ? 6 : 3), how, millis }],
    // What always fails would keep a breaker open for ever.
    [
      plan.onExhausted === "halt" || plan.breaker !== undefined ? 0 : 3,
      { _tag: "Broken", how: how === "interrupt" ? "die" : how, millis }
    ],
    [4, { _tag: "Busy", failures: chance.between(1, 4), route: routeOf(chance), millis }],
    [2, { _tag: "Rejected" }],
    [2, { _tag: "Ignorable" }],
    [0.5, { _tag: "Alarming" }],
    [2, { _tag: "Undecodable" }],
    [plan.onExhausted === "halt" ? 0 : 0.2, { _tag: "Stuck", calls: stuckCalls }],
    [0.3, { _tag: "Stubborn", millis: chance.pick(stubbornMillis(plan)) }]
  ])
}

/** A whole batch with two long ones would use up its budget every time, and so keep a breaker open for ever. */
const stubbornMillis = ({ listener, breaker }: BindingPlan): readonly [number, ...Array<number>] =>
  listener === "whole-batch" && breaker !== undefined ? [1_000, 2_000, 3_000] : [1_000, 12_000, 25_000]

const workload = (chance: Chance.Chance, plan: BindingPlan, index: number, troubleMillis: number): Array<Action> => {
  const actions: Array<Action> = []
  const keys = chance.pick([1, 3, 20])
  let partitions = plan.partitions
  let left = chance.between(10, 120)
  let serial = 0
  const at = (): number => chance.between(0, troubleMillis)
  if (chance.happens(0.25)) {
    partitions += chance.between(1, 3)
    actions.push({ _tag: "Grow", atMillis: chance.between(1_000, troubleMillis), binding: index, partitions })
  }
  const grownAt = actions[0]?.atMillis ?? 0
  while (left > 0) {
    const atMillis = chance.happens(0.4) ? 0 : at()
    const count = Math.min(left, chance.between(1, 30))
    left -= count

    const within = grownAt > 0 && atMillis > grownAt ? partitions : plan.partitions
    const records = Array.from({ length: count }, (): RecordPlan => {
      const key = chance.happens(0.1) ? null : `k${chance.between(1, keys)}`
      const partition = chance.between(0, within - 1)
      const forged = chance.happens(0.05)
      return { id: `${plan.name}-${serial++}`, partition, key, behaviour: behaviour(chance, plan), forged }
    })
    actions.push({ _tag: "Publish", atMillis, binding: index, records })
  }
  const somewhere = (): number => chance.between(0, plan.partitions - 1)
  for (let holes = chance.pick([0, 0, 1, 4]); holes > 0; holes--) {
    const kind = chance.pick(["control", "aborted"] as const)
    actions.push({ _tag: "Hole", atMillis: at(), binding: index, partition: somewhere(), kind })
  }
  if (chance.happens(0.15)) actions.push({ _tag: "Compact", atMillis: at(), binding: index, partition: somewhere() })
  if (chance.happens(0.1)) actions.push({ _tag: "Truncate", atMillis: at(), binding: index, partition: somewhere() })
  return actions
}

const lifecycle = (chance: Chance.Chance, process: number, troubleMillis: number, bindings: number): Array<Action> => {
  const actions: Array<Action> = []
  let atMillis = chance.happens(0.6) ? 0 : chance.between(0, troubleMillis / 2)
  actions.push({ _tag: "Start", atMillis, process })
  for (
    let turns = chance.weighted([
      [4, 0],
      [3, 1],
      [2, 2],
      [1, 4]
    ]);
    turns > 0;
    turns--
  ) {
    atMillis += chance.between(1, troubleMillis / 3)
    actions.push({ _tag: chance.happens(0.4) ? "Kill" : "Stop", atMillis, process })
    atMillis += chance.between(0, 15_000)
    actions.push({ _tag: "Start", atMillis, process })
  }
  for (
    let pauses = chance.weighted([
      [5, 0],
      [2, 1],
      [1, 3]
    ]);
    pauses > 0;
    pauses--
  ) {
    const from = chance.between(0, troubleMillis)
    const binding = chance.between(0, bindings - 1)
    actions.push({ _tag: "Pause", atMillis: from, process, binding })
    actions.push({ _tag: "Resume", atMillis: from + chance.between(1, 30_000), process, binding })
  }
  return actions
}

/**
 * `FaultPlan.random`, squeezed into the time of trouble. Chances become numbered requests, so that every fault is spent at some time: what must settle
 * afterwards then has nothing left against it.
 */
const faults = (chance: Chance.Chance, seed: number, intensity: number, troubleMillis: number): FaultPlan.FaultPlan => {
  const drawn = FaultPlan.random(seed, intensity)
  const finite = drawn.faults.flatMap((fault): ReadonlyArray<FaultPlan.Fault> => {
    if (fault._tag === "At") return [{ ...fault, after: (Number(fault.after) / 600_000) * troubleMillis }]
    const { trigger, effect } = fault
    if (trigger._tag === "Nth") return [fault]
    const strikes: Array<FaultPlan.Fault> = []
    for (let nth = 1; nth <= 60; nth++) {
      if (chance.happens(trigger.probability)) strikes.push(FaultPlan.nth(nth, trigger.match, effect))
    }
    return strikes
  })
  return { seed: drawn.seed, faults: finite }
}
