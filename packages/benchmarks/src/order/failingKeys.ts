/** Keys whose records fail: what the other keys notice, how late the heads are, and how fast keys are that fail all the time. */
import { Effect } from "effect"
import type { Participant, TopicPlan } from "../harness/Benchmark.ts"
import { runBindings } from "../harness/consumers.ts"
import { numberOf } from "../harness/kafka.ts"
import { now, pace, since } from "../harness/stopwatch.ts"
import { every, KeyedRecords, ordered, unavailable } from "./keyedRecords.ts"
import type { Parameters } from "./parameters.ts"

const partitions = 6
/** One key in this many has failing records. */
const keyEvery = 20

const topic: TopicPlan<Parameters> = {
  lifetime: "run",
  partitions,
  content: ({ records, keys, bytes }) => ({ records, keys, bytes })
}

/** A number that looks random, the same in every run. */
const mixed = (number: number): number => Math.imul(number + 1, 2_654_435_761) >>> 8

/** The rate of the keys whose records never fail, while others fail or not. */
export const otherKeys = (someFail: boolean): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* (round) {
    const { records, keys, delayMillis } = round.parameters
    const keyed = new KeyedRecords(
      records,
      keys,
      delayMillis,
      (number, key) => someFail && key % keyEvery === 0 && mixed(number) % every === 0
    )
    let others = 0
    let began = now()
    let spent = began
    const binding = ordered(round, delayMillis, (delivery) => {
      if (!keyed.take(delivery)) return unavailable
      if ((numberOf(delivery.value!) % keys) % keyEvery === 0) return Effect.void
      if (others++ === 0) began = now()
      if (others === records - records / keyEvery) spent = since(began)
      return Effect.void
    })
    yield* Effect.scoped(Effect.andThen(runBindings(round, [binding]), keyed.arrivals.all()))
    yield* keyed.arrivals.pace
    return { ...pace(spent, others), ...(yield* keyed.samples) }
  })
})

/** All keys fail: the rate as a share of keys/(f·d), where a key handles `every` records in each delay. */
export const allKeys: Participant<Parameters> = {
  topic: {
    lifetime: "round",
    partitions,
    content: ({ failingKeys, perKey, bytes }) => ({ records: failingKeys * perKey, keys: failingKeys, bytes })
  },
  role: Effect.fnUntraced(function* (round) {
    const { failingKeys, perKey, delayMillis } = round.parameters
    const keyed = new KeyedRecords(
      failingKeys * perKey,
      failingKeys,
      delayMillis,
      (number, key) => (Math.floor(number / failingKeys) + key) % every === 0
    )
    const binding = ordered(round, delayMillis, (delivery) => (keyed.take(delivery) ? Effect.void : unavailable))
    yield* Effect.scoped(Effect.andThen(runBindings(round, [binding]), keyed.arrivals.all()))
    const samples = yield* keyed.arrivals.pace
    const possible = (failingKeys * every * 1_000) / delayMillis
    return { ...samples, share: [samples.rate![0]! / possible], ...(yield* keyed.samples) }
  })
}
