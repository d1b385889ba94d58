/** One retry topic whose records wait 1, 2 or 4 s, by the number of their delivery: how late each is handled, and that none waits behind a longer wait. */
import { Binding, type Delivery, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Data, Effect } from "effect"
import { Arrivals } from "./harness/Arrivals.ts"
import { make, medianAtMost, type Participant, type Round } from "./harness/Benchmark.ts"
import { runBindings } from "./harness/consumers.ts"
import { createTopic, fillRetryTopic, numberOf } from "./harness/kafka.ts"

type Parameters = Readonly<Record<"records" | "bytes", number>>
type Incoming = Delivery.Delivery<Uint8Array | null, Uint8Array | null>

class Unavailable extends Data.TaggedError("Unavailable") {}

const unavailable = Effect.fail(new Unavailable())

const waitsMillis = [1_000, 2_000, 4_000]

/** The shortest difference between two waits: a record that is held up by a longer wait in front of it is as late as that. */
const heldUpMillis = 1_000

/** The longest waits come first, so that every other record has one in front of it. */
const attempts = [3, 3, 2, 1, 2, 1, 1]

const textOf = ({ record }: Incoming, name: string): number =>
  Number(Buffer.from(record.headers.findLast(({ key }) => key === name)!.value!).toString())

const lateness = (delivery: Incoming): number =>
  Date.now() - textOf(delivery, "x-eventbus-retry-timestamp") - waitsMillis[delivery.attempt - 1]!

const growing = (round: Round<Parameters>, handler: (delivery: Incoming) => Effect.Effect<void, Unavailable>) =>
  Binding.make("delays", {
    ...{ topic: round.topic, groupId: round.groupId, value: Serde.bytes, ackMode: "MANUAL" },
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [{ delay: "1 second", multiplier: 2, maxDelay: "30 seconds", maxAttempts: 3 }]
    }),
    onError: { Unavailable: Route.retry },
    handler
  })

const checked = (late: ReadonlyArray<number>) => {
  const earliest = Math.min(...late)
  const latest = late.reduce((most, millis) => Math.max(most, millis), 0)
  if (earliest < 0) return Effect.fail(`a record was handled ${-earliest} ms early`)
  return latest < heldUpMillis
    ? Effect.succeed({ late: [...late] })
    : Effect.fail(`a record was handled ${latest} ms late: as if behind a longer wait`)
}

/** Records of all three waits, published at one moment into the retry topic. */
const mixed = (partitions: number): Participant<Parameters> => ({
  topic: { lifetime: "round", partitions },
  role: Effect.fnUntraced(function* (round) {
    const { records, bytes } = round.parameters
    const retryTopic = `${round.topic}.retry-1`
    yield* createTopic(round.brokers, retryTopic, partitions)
    const arrivals = new Arrivals(records)
    const late: Array<number> = []
    const binding = growing(round, (delivery) =>
      Effect.sync(() => {
        late.push(lateness(delivery))
        arrivals.add(delivery.value)
      })
    )
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* runBindings(round, [binding])
        const told = (number: number) => ({ published: Date.now(), attempt: attempts[number % attempts.length]! })
        yield* fillRetryTopic(round.brokers, retryTopic, partitions, { records, bytes }, told)
        yield* arrivals.all()
      })
    )
    return yield* checked(late)
  })
})

/** Records that fail on the main topic, and then not, once or twice more: each failure leads to the next wait. */
const failing: Participant<Parameters> = {
  topic: {
    lifetime: "round",
    partitions: 6,
    content: ({ records, bytes }) => ({ records, bytes })
  },
  role: Effect.fnUntraced(function* (round) {
    const { records } = round.parameters
    const arrivals = new Arrivals(records)
    const late: Array<number> = []
    const binding = growing(round, (delivery) =>
      Effect.suspend(() => {
        const { value, tier, attempt } = delivery
        if (tier > 0) late.push(lateness(delivery))
        if (tier === 0 || attempt <= numberOf(value!) % 3) return unavailable
        arrivals.add(value)
        return Effect.void
      })
    )
    yield* Effect.scoped(Effect.andThen(runBindings(round, [binding]), arrivals.all()))
    return yield* checked(late)
  })
}

export const delays = make({
  name: "delays",
  header: [
    "10,000 records of 200 bytes, ackMode MANUAL, one attempt in place, one retry topic with waits of 1, 2 and 4 s; the round fails when one record is early, or 1 s late",
    "mixed: published at one moment into the retry topic, in 6 partitions or in one, the longest waits in front",
    "failing: each fails on the main topic, and up to twice in the retry topic, so that copies of later deliveries come in between"
  ],
  parameters: { records: 10_000, bytes: 200 },
  smoke: { records: 60 },
  participants: { "mixed, 6 partitions": mixed(6), "mixed, 1 partition": mixed(1), failing },
  measures: ["mixed, 6 partitions", "mixed, 1 partition", "failing"].map((participant) => ({
    participant,
    ...{ series: "late", quantile: 0.99, label: "lateness p99", unit: "ms", target: medianAtMost(150) }
  }))
})
