/** The cost of the order of each key while nothing fails: `bench consume`'s resilient binding, with keys. */
import { Binding, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import { Effect } from "effect"
import { Arrivals } from "../harness/Arrivals.ts"
import type { Participant, TopicPlan } from "../harness/Benchmark.ts"
import { runBindings } from "../harness/consumers.ts"
import type { Parameters } from "./parameters.ts"

const topic: TopicPlan<Parameters> = {
  lifetime: "run",
  partitions: 6,
  content: ({ unparked, keys, bytes }) => ({ records: unparked, keys, bytes })
}

export const nothingParked = (orderingMode: "PER_KEY" | "RELAXED_IN_RETRY"): Participant<Parameters> => ({
  topic,
  role: Effect.fnUntraced(function* (round) {
    const arrivals = new Arrivals(round.parameters.unparked)
    const binding = Binding.make("resilient", {
      ...{ topic: round.topic, groupId: round.groupId, value: Serde.bytes, ackMode: "MANUAL", orderingMode },
      naming: TopicName.perGroup,
      retry: RetryPolicy.tiered({
        nonRetryableExceptions: ["IllegalArgument"],
        skipToTierMapping: { Unavailable: 2 }
      }),
      circuitBreaker: {},
      handler: ({ value }) => Effect.sync(() => arrivals.add(value))
    })
    yield* Effect.scoped(Effect.andThen(runBindings(round, [binding]), arrivals.all()))
    return yield* arrivals.pace
  })
})
