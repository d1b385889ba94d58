/**
 * Assertions on the path of a record through the retry tiers (connector seed §10, `RetryTierAssertions`).
 *
 * ```ts
 * import { RetryTiers } from "@eventbus/testkit"
 * import { Effect } from "effect"
 *
 * export const expectation = Effect.gen(function* () {
 *   yield* RetryTiers.expectPath("orders", "o-1", ["main", "tier 1", "tier 2", "handled"])
 *   yield* RetryTiers.expectTimes("orders", "o-1", ["0 millis", "1 minute", "6 minutes"])
 * })
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { durationText } from "./internal/trail/trailText.ts"
import { type DeliveryStep, type RecordRef, TestBus } from "./TestBus.ts"
import { Unexpected } from "./Unexpected.ts"

/** One delivery, or how the last one ended. `waiting` means that the next delivery is not due yet. */
export type PathStep =
  | "main"
  | `tier ${number}`
  | "handled"
  | "dead letter"
  | "skipped"
  | "halted"
  | "held by breaker"
  | "abandoned"
  | "cut off"
  | "running"
  | "waiting"

/** Asserts the deliveries of a record, a tier once for each delivery in it, and how the last one ended. Fails with `Unexpected`. */
export const expectPath = Effect.fnUntraced(function* (
  topic: string,
  record: RecordRef,
  steps: ReadonlyArray<PathStep>
) {
  const found = pathOf(yield* stepsOf(topic, record))
  if (found.join() !== steps.join()) return yield* unexpected(topic, record, steps.join(" > "), found.join(" > "))
})

/** Asserts the exact start of each delivery since the first one. A waiting delivery counts with the time at which it is due. Fails with `Unexpected`. */
export const expectTimes = Effect.fnUntraced(function* (
  topic: string,
  record: RecordRef,
  times: ReadonlyArray<Duration.Input>
) {
  const steps = yield* stepsOf(topic, record)
  const begun = steps[0]?.atMillis ?? 0
  const found = steps.map(({ atMillis }) => durationText(atMillis - begun)).join(", ")
  const expected = times.map((each) => durationText(Duration.toMillis(each))).join(", ")
  if (found !== expected) return yield* unexpected(topic, record, expected, found)
})

const stepsOf = (topic: string, record: RecordRef): Effect.Effect<ReadonlyArray<DeliveryStep>, never, TestBus> =>
  TestBus.use(({ deliverySteps: steps }) => steps(topic, record))

/** The path that `expectPath` compares with: the delivery steps, each with its end. */
const pathOf = (steps: ReadonlyArray<DeliveryStep>): ReadonlyArray<PathStep> =>
  steps.flatMap((step): ReadonlyArray<PathStep> => {
    const where: PathStep = step.tier === 0 ? "main" : `tier ${step.tier}`
    const end = ends[step.outcome]
    return end === undefined ? [where] : [where, end]
  })

/** `Routed` has no entry: the copy's own delivery step follows. */
const ends: Readonly<Record<DeliveryStep["outcome"], PathStep | undefined>> = {
  Handled: "handled",
  Routed: undefined,
  DeadLettered: "dead letter",
  Skipped: "skipped",
  Halted: "halted",
  HeldByBreaker: "held by breaker",
  Abandoned: "abandoned",
  CutOff: "cut off",
  Running: "running",
  Waiting: "waiting"
}

const unexpected = Effect.fnUntraced(function* (topic: string, record: RecordRef, expected: string, found: string) {
  const trail = yield* TestBus.use((bus) => bus.trail(topic, record))
  const subject = `path of ${typeof record === "string" ? `'${record}'` : "a record"} from '${topic}'`
  return yield* new Unexpected({ subject, expected, found: `${found === "" ? "nothing" : found}\n${trail}` })
})
