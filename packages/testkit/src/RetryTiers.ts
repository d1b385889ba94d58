/**
 * Assertions on the way of a record through the tiers (connector seed §10, `RetryTierAssertions`).
 *
 * ```ts
 * yield* RetryTiers.expectPath("orders", "o-1", ["main", "tier 1", "tier 2", "handled"])
 * yield* RetryTiers.expectTimes("orders", "o-1", ["0 millis", "1 minute", "6 minutes"])
 * ```
 */
import { Duration, Effect } from "effect"
import { durationText } from "./internal/trail/trailText.ts"
import { type DeliveryStep, type RecordRef, TestBus } from "./TestBus.ts"
import { Unexpected } from "./Unexpected.ts"

/** One delivery, or how it ended; `waiting`: the last delivery is yet to come. */
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

/** The deliveries of a record, each tier as often as it had it, and at last how it ended. */
export const expectPath = Effect.fnUntraced(function* (
  topic: string,
  record: RecordRef,
  steps: ReadonlyArray<PathStep>
) {
  const found = pathOf(yield* stepsOf(topic, record))
  if (found.join() !== steps.join()) return yield* unexpected(topic, record, steps.join(" > "), found.join(" > "))
})

/** When each delivery began, exactly, since the first one did; those that wait count with the time at which they are due. */
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

/** What a path is compared with: the steps of some hops. */
export const pathOf = (steps: ReadonlyArray<DeliveryStep>): ReadonlyArray<PathStep> =>
  steps.flatMap((hop): ReadonlyArray<PathStep> => {
    const tierAttempt: PathStep = hop.tier === 0 ? "main" : `tier ${hop.tier}`
    const end = ends[hop.outcome]
    return end === undefined ? [tierAttempt] : [tierAttempt, end]
  })

/** A copy is followed by its own hop. */
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
  const subject = `way of ${typeof record === "string" ? `'${record}'` : "a record"} from '${topic}'`
  return yield* new Unexpected({ subject, expected, found: `${found === "" ? "nothing" : found}\n${trail}` })
})
