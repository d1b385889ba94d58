/**
 * Draws the base of a scenario from a seed: one service, its bindings and records, its processes, operators and faults.
 */
import { FaultPlan } from "@eventbus/testkit"
import { drawBehaviour } from "./behaviours.ts"
import * as Random from "./random.ts"
import { defaultMaxReplays } from "./replays.ts"
import { waitMillis } from "./retries.ts"
import type {
  Action,
  BindingPlan,
  BreakerPlan,
  Outage,
  ProcessPlan,
  RecordPlan,
  Scenario,
  TierPlan
} from "./Scenario.ts"

export const drawBase = (seed: number): Scenario => {
  const random = Random.make(seed)
  const faultPeriodMillis = random.between(20, 90) * 1000
  const intensity = random.weighted([
    [4, 0],
    [3, 0.3],
    [3, 1]
  ])
  const bindings = Array.from(
    {
      length: random.weighted([
        [4, 1],
        [1, 2]
      ])
    },
    (_, index) => drawBinding(random, index)
  )
  const processes = topology(random)
  const actions = [
    ...bindings.flatMap((plan, index) => workload(random, plan, index, faultPeriodMillis)),
    ...processes.flatMap((_, index) =>
      lifecycle(
        random,
        index,
        faultPeriodMillis,
        bindings.map((_, at) => at)
      )
    )
  ].sort((a, b) => a.atMillis - b.atMillis)
  return {
    seed,
    interleaving: random.happens(0.3) ? "shuffled" : "first-come",
    assignment: random.happens(0.25) ? "eager" : "cooperative-sticky",
    latencyMillis: random.pick([0, 0, 5, 40]),
    transactionLatencyMillis: 0,
    maxRecordsPerChunk: random.pick([3, 10, 40, 500]),
    bindings,
    processes,
    actions,
    faults: faults(random, seed, intensity, faultPeriodMillis),
    intensity,
    faultPeriodMillis,
    outage: outage(random, bindings, faultPeriodMillis)
  }
}

const outage = (
  random: Random.Random,
  bindings: ReadonlyArray<BindingPlan>,
  faultPeriodMillis: number
): Outage | undefined => {
  if (!random.happens(0.35)) return undefined
  const fromMillis = random.between(0, faultPeriodMillis / 2)
  return {
    binding: bindings[random.between(0, bindings.length - 1)]!.name,
    fromMillis,
    toMillis: Math.min(faultPeriodMillis, fromMillis + random.pick([500, 4_000, 20_000]))
  }
}

/** Two to five consumers of each binding, in one to five processes. */
const topology = (random: Random.Random): Scenario["processes"] => {
  let left = random.between(2, 5)
  const processes: Array<ProcessPlan> = []
  while (left > 0) {
    const concurrency = left > 1 && random.happens(0.3) ? 2 : 1
    processes.push({ concurrency, service: 0 })
    left -= concurrency
  }
  return processes
}

export const drawBinding = (random: Random.Random, index: number): BindingPlan => {
  const listener = random.weighted([
    [5, "single"],
    [2, "batch"],
    [2, "whole-batch"],
    [2, "transactional"]
  ] as const)
  const processingOrder = listener === "single" ? random.pick(["partition", "key", "unordered"] as const) : "partition"
  const name = index === 0 ? "orders" : "bills"
  const halts = listener !== "whole-batch" && processingOrder === "partition" && random.happens(0.15)
  const tiers = halts || random.happens(0.4) ? [] : tiersOf(random, listener !== "transactional")
  return {
    name,
    service: 0,
    topic: name,
    otherTopics: [],
    groupId: `${name}-readers`,
    partitions: random.between(1, 6),
    listener,
    verdict: random.pick(["from", "these", "none"] as const),
    processingOrder,
    ackMode: random.pick(["MANUAL_IMMEDIATE", "MANUAL"] as const),
    batchFailureStrategy: random.pick(["SEEK_TO_FAILED", "DLQ_AND_CONTINUE"] as const),
    onExhausted: halts ? "halt" : "dead-letter",
    maxReplays: defaultMaxReplays,
    handlesLetters: false,
    isIdempotent: false,
    membership: random.happens(0.15) ? "static" : "dynamic",
    maxAttempts: random.between(1, 4),
    tiers,
    tierConsumer: random.happens(0.3) ? "separate" : "shared",
    breaker: random.happens(0.45) ? breakerOf(random) : undefined,
    maxPollRecords: random.pick([1, 4, 10]),
    maxInFlight: random.weighted([
      [3, undefined],
      [1, 1],
      [1, 2],
      [1, 5]
    ] as const),
    maxBufferedRecords: random.pick([1, 20, 50_000]),
    commitIntervalMillis: random.pick([0, 200, 2000]),
    maxWaitMillis: random.pick([100, 1_000, 5_000, 5_000]),
    shutdownTimeoutMillis: random.pick([2_000, 10_000])
  }
}

/** One to three tiers: a topic for each, with waits that are equal or grow, or one topic for all. The offsets of a transactional binding move in order, so that no wait may grow. */
const tiersOf = (random: Random.Random, mayGrow: boolean): ReadonlyArray<TierPlan> => {
  const count = random.between(1, 3)
  const shares = random.happens(0.3)
  let delayMillis = random.pick([0, 200, 1_000, 5_000])
  let longestMillis = delayMillis
  return Array.from({ length: count }, (_, index): TierPlan => {
    if (index > 0 && !shares) delayMillis = longestMillis + random.pick([1_000, 4_000, 15_000])
    // A run ends when nothing has happened for six minutes: no wait grows longer than that.
    const grows = mayGrow && !shares && delayMillis <= 16_000 && random.happens(0.4)
    const multiplier = grows ? random.pick([1.5, 2, 4]) : 1
    const tier = { delayMillis, multiplier, maxAttempts: random.between(1, 3), concurrency: random.pick([1, 1, 2, 5]) }
    longestMillis = waitMillis(tier, tier.maxAttempts)
    return tier
  })
}

export const breakerOf = (random: Random.Random): BreakerPlan => {
  const windowType = random.happens(0.7) ? "count" : "time"
  const windowSize = windowType === "count" ? random.between(1, 8) : random.pick([2, 10, 30])
  return {
    windowType,
    windowSize,
    minimumCalls: random.between(1, windowType === "count" ? windowSize : 6),
    failureRate: random.pick([20, 50, 50, 100]),
    permits: random.between(1, 3),
    waitMillis: random.pick([300, 2_000, 8_000]),
    slowMillis: random.pick([300, 5_000, 60_000]),
    automaticPauseOnOpen: random.happens(0.6),
    backsOff: random.happens(0.3),
    probes: random.happens(0.3)
  }
}

const workload = (
  random: Random.Random,
  plan: BindingPlan,
  index: number,
  faultPeriodMillis: number
): Array<Action> => {
  const actions: Array<Action> = []
  const keys = random.pick([1, 3, 20])
  let partitions = plan.partitions
  let left = random.between(10, 120)
  let serial = 0
  const at = (): number => random.between(0, faultPeriodMillis)
  if (random.happens(0.25)) {
    partitions += random.between(1, 3)
    actions.push({ _tag: "Grow", atMillis: random.between(1_000, faultPeriodMillis), binding: index, partitions })
  }
  const grownAt = actions[0]?.atMillis ?? 0
  while (left > 0) {
    const atMillis = random.happens(0.4) ? 0 : at()
    const count = Math.min(left, random.between(1, 30))
    left -= count

    const within = grownAt > 0 && atMillis > grownAt ? partitions : plan.partitions
    const records = Array.from({ length: count }, (): RecordPlan => {
      const key = random.happens(0.1) ? null : `k${random.between(1, keys)}`
      const partition = random.between(0, within - 1)
      const forged = random.happens(0.05)
      return {
        id: `${plan.name}-${serial++}`,
        partition,
        key,
        behaviour: drawBehaviour(random, plan),
        forged,
        claim: undefined
      }
    })
    actions.push({ _tag: "Publish", atMillis, binding: index, records, others: [] })
  }
  const somewhere = (): number => random.between(0, plan.partitions - 1)
  for (let holes = random.pick([0, 0, 1, 4]); holes > 0; holes--) {
    const kind = random.pick(["control", "aborted"] as const)
    actions.push({ _tag: "Hole", atMillis: at(), binding: index, partition: somewhere(), kind })
  }
  if (random.happens(0.15)) actions.push({ _tag: "Compact", atMillis: at(), binding: index, partition: somewhere() })
  if (random.happens(0.1))
    actions.push({
      _tag: "Truncate",
      atMillis: at(),
      binding: index,
      partition: somewhere(),
      of: "main",
      share: "half"
    })
  return actions
}

/** Starts, stops and kills of one process, and pauses of its bindings. */
export const lifecycle = (
  random: Random.Random,
  process: number,
  faultPeriodMillis: number,
  bindings: ReadonlyArray<number>
): Array<Action> => {
  const actions: Array<Action> = []
  let atMillis = random.happens(0.6) ? 0 : random.between(0, faultPeriodMillis / 2)
  actions.push({ _tag: "Start", atMillis, process })
  for (
    let restarts = random.weighted([
      [4, 0],
      [3, 1],
      [2, 2],
      [1, 4]
    ]);
    restarts > 0;
    restarts--
  ) {
    atMillis += random.between(1, faultPeriodMillis / 3)
    actions.push({ _tag: random.happens(0.4) ? "Kill" : "Stop", atMillis, process })
    atMillis += random.between(0, 15_000)
    actions.push({ _tag: "Start", atMillis, process })
  }
  for (
    let pauses = random.weighted([
      [5, 0],
      [2, 1],
      [1, 3]
    ]);
    pauses > 0;
    pauses--
  ) {
    const from = random.between(0, faultPeriodMillis)
    const binding = bindings[random.between(0, bindings.length - 1)]!
    actions.push({ _tag: "Pause", atMillis: from, process, binding })
    actions.push({ _tag: "Resume", atMillis: from + random.between(1, 30_000), process, binding })
  }
  return actions
}

/** `FaultPlan.random` within the time of faults. Probabilities become numbered requests, so that the faults end and everything can settle afterwards. */
export const faults = (
  random: Random.Random,
  seed: number,
  intensity: number,
  faultPeriodMillis: number
): FaultPlan.FaultPlan => {
  const drawn = FaultPlan.random(seed, intensity)
  const finite = drawn.faults.flatMap((fault): ReadonlyArray<FaultPlan.Fault> => {
    if (fault._tag === "At") return [{ ...fault, after: (Number(fault.after) / 600_000) * faultPeriodMillis }]
    const { trigger, effect } = fault
    if (trigger._tag === "Nth") return [fault]
    const applied: Array<FaultPlan.Fault> = []
    for (let nth = 1; nth <= 60; nth++) {
      if (random.happens(trigger.probability)) applied.push(FaultPlan.nth(nth, trigger.match, effect))
    }
    return applied
  })
  return { seed: drawn.seed, faults: finite }
}
