/** Order per key through retry topics: what failures of some keys cost the others, and what parked keys cost. */
import { make, medianAtLeast, medianAtMost, ratioAtLeast } from "./harness/Benchmark.ts"
import { allKeys, otherKeys } from "./order/failingKeys.ts"
import { hotKey } from "./order/hotKey.ts"
import { nothingParked } from "./order/nothingParked.ts"
import { parkedHelpers, rebalanced, restart } from "./order/parkedKeys.ts"

const rate = { series: "rate", unit: "records/s" }
const none = (participant: string) => ({
  ...{ participant, series: "overtaken", label: "overtaken", unit: "records", target: medianAtMost(0) }
})

export const order = make({
  name: "order",
  header: [
    "orderingMode PER_KEY, ackMode MANUAL, records of 100 bytes in 6 partitions, one attempt in place, one retry topic; each case in a fresh process in each round",
    "some keys fail: 1,200,000 records of 20,000 keys; of 1,000 keys 5 % of the records fail once, delay 1 s; the rate is that of the other keys",
    "behind: from the end of a head to its first follower, where that was there; a head that is early, a record that is lost or comes twice fails the round",
    "all keys fail: 1,000 keys of 100 records, 5 % of them fail once, delay 1 s; the share is that of keys/(f d)",
    "hot key: one key, a million followers, the head comes back after 10 s; resident memory at the end of the drain against that at the end of the head",
    "hot key live: the same, with a full collection before each of 50 samples: the most that was held in the heap and outside of it against that at the end of the head",
    "RELAXED, PER_KEY: the resilient case of bench consume with 20,000 keys; nothing fails",
    "restart, rebalance: 50,000 parked keys with a follower each, a record of a free key for each partition every 10 ms; begin: from the start of a member to its first record of the last partition, joining the group included; moves: the gap of the partitions that move to a second member; stays: the longest gap of the others"
  ],
  parameters: {
    records: 1_200_000,
    keys: 20_000,
    bytes: 100,
    delayMillis: 1_000,
    failingKeys: 1_000,
    perKey: 100,
    followers: 1_000_000,
    hotDelayMillis: 10_000,
    unparked: 400_000,
    parked: 50_000,
    presentMillis: 2_000
  },
  smoke: {
    records: 2_000,
    keys: 100,
    delayMillis: 300,
    failingKeys: 20,
    perKey: 20,
    followers: 500,
    hotDelayMillis: 300,
    unparked: 600,
    parked: 50,
    presentMillis: 300
  },
  helpers: parkedHelpers,
  participants: {
    clean: otherKeys(false),
    "some keys fail": otherKeys(true),
    "all keys fail": allKeys,
    "hot key": hotKey("resident"),
    "hot key live": hotKey("live"),
    RELAXED: nothingParked("RELAXED_IN_RETRY"),
    PER_KEY: nothingParked("PER_KEY"),
    "restart without parked keys": restart(false),
    restart: restart(true),
    rebalance: rebalanced
  },
  measures: [
    { ...rate, participant: "some keys fail", against: "clean", target: ratioAtLeast(0.7) },
    {
      ...{ participant: "some keys fail", series: "late", quantile: 0.99, label: "lateness p99", unit: "ms" },
      target: medianAtMost(150)
    },
    { participant: "some keys fail", series: "behind", label: "behind p50", unit: "ms", target: medianAtMost(10) },
    none("some keys fail"),
    { participant: "all keys fail", series: "share", unit: "of keys/(f d)", target: medianAtLeast(0.85) },
    { participant: "all keys fail", series: "late", quantile: 0.99, label: "lateness p99", unit: "ms" },
    none("all keys fail"),
    { ...rate, participant: "hot key", target: medianAtLeast(100_000) },
    { participant: "hot key", series: "last", label: "resident", unit: "MiB" },
    { participant: "hot key", series: "growth", label: "growth", unit: "last/first", target: medianAtMost(1.1) },
    none("hot key"),
    { participant: "hot key live", series: "last", label: "most", unit: "MiB" },
    {
      ...{ participant: "hot key live", series: "growth", label: "growth", unit: "most/first" },
      target: medianAtMost(1.1)
    },
    none("hot key live"),
    { ...rate, participant: "PER_KEY", against: "RELAXED", target: ratioAtLeast(0.97) },
    {
      ...{
        participant: "restart",
        against: "restart without parked keys",
        series: "begin",
        label: "begin",
        unit: "ms"
      },
      target: medianAtMost(5_000)
    },
    { participant: "rebalance", series: "moves", label: "moves", unit: "ms", target: medianAtMost(5_000) },
    { participant: "rebalance", series: "stays", label: "stays", unit: "ms", target: medianAtMost(500) }
  ]
})
