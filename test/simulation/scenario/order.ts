/**
 * Draws the base of a scenario of order per key through retry topics: few keys, so that records wait behind others of their key, with crashes, handovers
 * and faults. In calm seeds nothing happens: no key may wait for another one. In gentle ones partitions are given up in time: nothing is handled twice.
 */
import { breakerOf, faults } from "./base.ts"
import type * as Random from "./random.ts"
import { defaultMaxReplays } from "./replays.ts"
import type { Action, Behaviour, BindingPlan, Outage, RecordPlan, Route, Scenario, TierPlan } from "./Scenario.ts"
import { secondTopic } from "./secondTopic.ts"

export const drawPlain = (random: Random.Random, seed: number, nature: Nature): Scenario => {
  const isRough = nature === "rough"
  const faultPeriodMillis = random.between(20, 80) * 1000
  const intensity = isRough ? random.pick([0, 0, 0.3, 0.3, 1]) : 0
  const plan = drawBinding(random, nature)
  const processes = drawProcesses(random, plan)
  const actions = [
    ...workload(random, plan, nature, faultPeriodMillis),
    ...(nature === "calm" ? processes.map((_, process) => start(process, 0)) : []),
    ...(nature === "calm" ? [] : lives(random, processes.length, isRough, faultPeriodMillis)),
    ...(isRough ? pauses(random, processes.length, faultPeriodMillis) : [])
  ]
  return {
    seed,
    interleaving: random.happens(0.4) ? "shuffled" : "first-come",
    assignment: random.happens(0.25) ? "eager" : "cooperative-sticky",
    latencyMillis: random.pick([0, 0, 5, 40]),
    transactionLatencyMillis: 0,
    maxRecordsPerChunk: random.pick([3, 10, 40, 500]),
    bindings: [plan],
    processes,
    actions: actions.sort((a, b) => a.atMillis - b.atMillis),
    faults: intensity === 0 ? { seed, faults: [] } : faults(random, seed, intensity, faultPeriodMillis),
    intensity,
    faultPeriodMillis,
    outage: isRough ? drawOutage(random, plan, faultPeriodMillis) : undefined
  }
}

/** Whether nothing disturbs a run: no key may wait for another one there. */
export const isCalm = ({ faults: { faults: all }, actions, outage }: Scenario): boolean =>
  all.length === 0 && outage === undefined && actions.every(({ _tag }) => _tag === "Start" || _tag === "Publish")

export type Nature = "calm" | "gentle" | "rough"

export const drawBinding = (random: Random.Random, nature: Nature): BindingPlan => ({
  name: "orders",
  service: 0,
  topic: "orders",
  otherTopics: random.happens(0.2) ? [secondTopic] : [],
  groupId: "orders-readers",
  partitions: random.pick([1, 1, 2, 3, 4]),
  listener: "single",
  verdict: "none",
  processingOrder: random.pick(["partition", "key"] as const),
  ackMode: random.pick(["MANUAL_IMMEDIATE", "MANUAL"] as const),
  batchFailureStrategy: "SEEK_TO_FAILED",
  onExhausted: "dead-letter",
  maxReplays: defaultMaxReplays,
  handlesLetters: false,
  isIdempotent: false,
  membership: random.happens(0.15) ? "static" : "dynamic",
  maxAttempts: random.between(1, 3),
  tiers: drawTiers(random, nature === "calm"),
  tierConsumer: "shared",
  // One key after the other fails its trial calls: with long waits a run would not end.
  breaker:
    nature === "rough" && random.happens(0.35) ? { ...breakerOf(random), waitMillis: 500, backsOff: false } : undefined,
  perKey: {
    onDeadLetter: random.happens(0.4) ? "hold" : "continue",
    holdForMillis: random.pick([3_000, 20_000]),
    maxParkedKeys: nature === "calm" ? 1_000 : random.pick([1, 2, 1_000]),
    maxParkedBytes: random.pick([1, 300, 16 * 1024 * 1024])
  },
  maxPollRecords: random.pick([1, 4, 10]),
  maxInFlight: nature === "calm" ? undefined : random.pick([undefined, undefined, 1, 2, 5]),
  maxBufferedRecords: nature === "calm" ? 50_000 : random.pick([1, 20, 50_000]),
  commitIntervalMillis: random.pick([0, 200, 2_000]),
  maxWaitMillis: random.pick([100, 1_000, 5_000]),
  shutdownTimeoutMillis: nature === "gentle" ? 15_000 : random.pick([2_000, 10_000])
})

const drawTiers = (random: Random.Random, calm: boolean): ReadonlyArray<TierPlan> => {
  const shares = random.happens(0.2)
  let delayMillis = calm ? 20_000 : random.pick([200, 1_000, 5_000])
  return Array.from({ length: random.between(1, 3) }, (_, index): TierPlan => {
    if (index > 0 && !shares) delayMillis += random.pick([0, 1_000, 8_000])
    return { delayMillis, multiplier: 1, maxAttempts: random.between(1, 3), concurrency: random.pick([1, 1, 2, 5]) }
  })
}

/** One key, or more: some of them are clean, which means that all of their records are fine. */
const workload = (
  random: Random.Random,
  plan: BindingPlan,
  nature: Nature,
  faultPeriodMillis: number
): ReadonlyArray<Action> => {
  const keys = random.pick([1, 2, 4, 12])
  const cleanKeys = nature === "calm" ? 2 : 0
  let left = random.between(10, plan.breaker === undefined ? 120 : 50)
  let serial = 0
  const actions: Array<Action> = []
  while (left > 0) {
    const count = Math.min(left, random.between(1, 30))
    left -= count
    const records = Array.from({ length: count }, (): RecordPlan => {
      const number = random.between(1, keys + cleanKeys)
      const isClean = number > keys
      const key = random.happens(0.06) ? null : isClean ? `clean${number}` : `k${number}`
      const partition = random.between(0, plan.partitions - 1)
      const behaviour = isClean && key !== null ? fine(random) : drawBehaviour(random, plan, nature)
      return {
        id: `${plan.name}-${serial++}`,
        partition,
        key,
        behaviour,
        forged: random.happens(0.05),
        claim: undefined
      }
    })
    const atMillis = random.happens(0.4) ? 0 : random.between(0, faultPeriodMillis)
    const topic = plan.otherTopics[0] !== undefined && random.happens(0.5) ? { topic: plan.otherTopics[0] } : {}
    actions.push({ _tag: "Publish", atMillis, binding: 0, ...topic, records, others: [] })
  }
  return actions
}

const fine = (random: Random.Random): Behaviour => ({ _tag: "Fine", millis: random.pick([0, 0, 20]) })

export const drawBehaviour = (random: Random.Random, plan: BindingPlan, nature: Nature): Behaviour => {
  const millis = random.weighted([
    [6, 0],
    [3, 20],
    [{ calm: 0, gentle: 6, rough: 1 }[nature], 400],
    [{ calm: 0, gentle: 1, rough: 0.2 }[nature], 3_000]
  ] as const)
  const how = random.pick(["fail", "die", "throw"] as const)
  const route = random.pick<Route>([
    { _tag: "Next" },
    { _tag: "Tier", tier: random.between(1, 3) },
    { _tag: "After", millis: random.pick([0, 3_000, 100_000]) }
  ])
  const share = random.pick([0.3, 1, 3])
  return random.weighted<Behaviour>([
    [60, { _tag: "Fine", millis }],
    [10 * share, { _tag: "Flaky", failures: random.between(1, 6), how, millis }],
    [plan.breaker === undefined ? 3 * share : 0, { _tag: "Broken", how, millis }],
    [4 * share, { _tag: "Busy", failures: random.between(1, 4), route, millis }],
    [2 * share, { _tag: "Rejected" }],
    [2 * share, { _tag: "Ignorable" }],
    [nature === "rough" ? 0.3 : 0, { _tag: "Alarming" }],
    [2 * share, { _tag: "Undecodable" }],
    [nature === "rough" ? 0.3 : 0, { _tag: "Stubborn", millis: random.pick([1_000, 12_000, 25_000]) }]
  ])
}

const start = (process: number, atMillis: number): Action => ({ _tag: "Start", atMillis, process })

/** Up to four members. More than there are partitions have nothing to do. */
const drawProcesses = (random: Random.Random, { partitions }: BindingPlan): Scenario["processes"] => {
  const concurrency = 1
  return Array.from({ length: random.between(1, Math.min(3, partitions + 1)) }, () => ({ concurrency, service: 0 }))
}

/** Processes restart, crash, come and go. */
export const lives = (
  random: Random.Random,
  processes: number,
  isRough: boolean,
  faultPeriodMillis: number
): ReadonlyArray<Action> => {
  const actions: Array<Action> = []
  for (let process = 0; process < processes; process++) {
    let atMillis = random.happens(0.6) ? 0 : random.between(0, faultPeriodMillis / 4)
    actions.push(start(process, atMillis))
    for (let left = isRough ? random.pick([0, 1, 2, 4]) : random.between(1, 6); left > 0; left--) {
      atMillis += random.between(1, faultPeriodMillis / 4)
      actions.push({ _tag: isRough && random.happens(0.5) ? "Kill" : "Stop", atMillis, process })
      atMillis += random.between(0, 10_000)
      actions.push(start(process, atMillis))
    }
  }
  return actions
}

const pauses = (random: Random.Random, processes: number, faultPeriodMillis: number): ReadonlyArray<Action> => {
  const actions: Array<Action> = []
  for (let left = random.pick([0, 0, 1, 2]); left > 0; left--) {
    const atMillis = random.between(0, faultPeriodMillis)
    const process = random.between(0, processes - 1)
    actions.push({ _tag: "Pause", atMillis, process, binding: 0 })
    actions.push({ _tag: "Resume", atMillis: atMillis + random.between(1, 20_000), process, binding: 0 })
  }
  return actions
}

const drawOutage = (random: Random.Random, plan: BindingPlan, faultPeriodMillis: number): Outage | undefined => {
  if (!random.happens(0.3)) return undefined
  const fromMillis = random.between(0, faultPeriodMillis / 2)
  const toMillis = Math.min(faultPeriodMillis, fromMillis + random.pick([500, 4_000, 20_000]))
  return { binding: plan.name, fromMillis, toMillis }
}
