/**
 * Scenarios of order per key that are written down and not drawn: what must come together in them is too rare for random seeds.
 */
import { FaultPlan } from "@eventbus/testkit"
import { drawOrder } from "./generateOrder.ts"
import type { Action, Behaviour, BindingPlan, RecordPlan, Scenario, TierPlan } from "./Scenario.ts"

const tier = (delayMillis: number): TierPlan => ({ delayMillis, multiplier: 1, maxAttempts: 1, concurrency: 2 })

interface Given {
  readonly tiers: ReadonlyArray<TierPlan>
  readonly processes?: number
  readonly faults?: ReadonlyArray<FaultPlan.Fault>
  readonly actions: ReadonlyArray<Action>
}

/** One partition, where each record of a key is in work as soon as those before it are done. */
const scenario = ({ tiers, processes = 1, faults = [], actions }: Given): Scenario => {
  const drawn = drawOrder(0)
  const plan: BindingPlan = {
    ...drawn.bindings[0]!,
    ...{ partitions: 1, otherTopics: [], processingOrder: "key", ackMode: "MANUAL_IMMEDIATE", membership: "dynamic" },
    ...{ maxAttempts: 1, tiers, breaker: undefined, maxPollRecords: 10, maxInFlight: undefined },
    perKey: { onDeadLetter: "continue", holdForMillis: 20_000, maxParkedKeys: 1_000, maxParkedBytes: 1_000_000 },
    ...{ maxBufferedRecords: 50_000, commitIntervalMillis: 200, maxWaitMillis: 100, shutdownTimeoutMillis: 20_000 }
  }
  return {
    ...{ seed: 0, interleaving: "first-come", assignment: "cooperative-sticky", latencyMillis: 5 },
    ...{ transactionLatencyMillis: 0, maxRecordsPerChunk: 500, bindings: [plan] },
    processes: Array.from({ length: processes }, () => ({ concurrency: 1, service: 0 })),
    actions,
    faults: { seed: 0, faults },
    intensity: faults.length === 0 ? 0 : 1,
    faultPeriodMillis: 60_000,
    outage: undefined
  }
}

/** Records of a key each: the first character of their ids. */
const publish = (atMillis: number, records: Readonly<Record<string, Behaviour>>): Action => ({
  ...{ _tag: "Publish", atMillis, binding: 0, others: [] },
  records: Object.entries(records).map(
    ([id, behaviour]): RecordPlan => ({ id, partition: 0, key: id[0]!, behaviour, forged: false, claim: undefined })
  )
})

const life = (_tag: "Start" | "Stop" | "Kill", atMillis: number, process = 0): Action => ({ _tag, atMillis, process })

const fine = (millis = 0): Behaviour => ({ _tag: "Fine", millis })
const flaky = (failures: number, millis = 0): Behaviour => ({ _tag: "Flaky", failures, how: "fail", millis })
/** Fails on its way to the second retry topic. */
const busy = (failures: number, millis = 0): Behaviour => ({
  ...{ _tag: "Busy", failures, millis },
  route: { _tag: "Tier", tier: 2 }
})

/** The lock of `a` stands behind that of `b`, whose handler fails while the partition is given up: `a` is done, and its lock must move. */
export const behindTheFront = scenario({
  tiers: [tier(1_000)],
  actions: [
    life("Start", 0),
    publish(0, { b1: flaky(2, 3_000) }),
    publish(3_500, { a1: flaky(1), a2: fine() }),
    life("Stop", 5_000),
    life("Start", 10_000)
  ]
})

/** The same where the lock of `a` has moved to another retry topic, and an older one of it stands behind that of `b`. */
export const behindAnOlderLock = scenario({
  tiers: [tier(1_000), tier(2_000)],
  actions: [
    life("Start", 0),
    publish(0, { b1: busy(2, 18_000) }),
    publish(19_000, { a1: busy(1), a2: fine(3_500), a3: fine(3_500) }),
    life("Stop", 30_000),
    life("Start", 45_000)
  ]
})

/** `a3` fails, and its lock is on its way. The one before it, behind that of `b`, is read meanwhile, and must be found again after a crash. */
export const superseded = scenario({
  tiers: [tier(10_000)],
  faults: Array.from({ length: 40 }, (_, index) =>
    FaultPlan.nth(
      index + 2,
      { operation: "produce", topic: "orders.retry-1", clientId: "p1.2" },
      { _tag: "LoseRequest" }
    )
  ),
  actions: [
    life("Start", 0),
    publish(1_000, { a1: flaky(1), a2: fine(1_000), a3: flaky(1, 1_000) }),
    publish(6_000, { b1: flaky(1) }),
    life("Stop", 11_600),
    life("Start", 14_000),
    life("Kill", 24_000),
    life("Start", 30_000)
  ]
})

/** The lock of `a3` arrives when its owner has lost the partition. The second owner is not as far when it dies: the third one must begin where the second one did. */
export const lateLock = scenario({
  tiers: [tier(1_000), tier(2_000)],
  processes: 3,
  faults: [
    FaultPlan.nth(2, { operation: "produce", topic: "orders.retry-2", clientId: "p1.1" }, { _tag: "LoseRequest" }),
    { _tag: "At", after: 8_500, effect: { _tag: "SessionExpired", clientId: "p1.1" } }
  ],
  actions: [
    life("Start", 0),
    publish(1_000, { a1: flaky(1), a2: fine(3_000), a3: busy(1), a4: fine() }),
    life("Start", 3_000, 1),
    life("Kill", 10_500),
    life("Kill", 11_000, 1),
    life("Start", 12_000, 2)
  ]
})
