/** The choice for a trial of a half-open breaker, which a delivery gives back like its permit: whatever happens to it, another record can have the trial. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import type { BreakerPermits } from "../../src/internal/slots/breakerPermits.ts"
import { DeliveryContext } from "../../src/internal/slots/deliveryContext.ts"

const record: ConsumerRecord = {
  ...{ topic: "orders", partition: 0, offset: 0n, timestamp: 0, timestampType: "CreateTime" },
  ...{ key: null, value: null, headers: [] }
}

/** A half-open breaker without a free permit. It notes the records whose choice goes to others. */
const busy = () => {
  const passed: Array<ConsumerRecord> = []
  const breaker: BreakerPermits = {
    ...{ tryAcquire: () => undefined, isTrial: () => false, giveBack: () => {}, endTrial: () => {} },
    ...{ staysInPlace: () => true, remembersFailures: () => false, isCurrent: () => true, admits: () => false },
    waitForChoice: () => Effect.never,
    pass: (given) => {
      if (given !== undefined) passed.push(given)
    },
    ...{ holdsUp: () => true, onHeldUp: () => () => {}, trials: () => ({ candidates: 0, only: undefined }) }
  } as Partial<BreakerPermits> as BreakerPermits
  return { breaker, passed }
}

const gateOf = (open: boolean) => ({
  ...{ stopping: false, ending: false, current: record, open, mayWait: true },
  ...{ runnable: Effect.never, onStop: () => () => {} }
})

const waiting = (open: boolean) =>
  Effect.gen(function* () {
    const { breaker, passed } = busy()
    const delivery = new DeliveryContext({ slots: [], breaker, clock: yield* Clock.Clock }, 0)
    const fiber = yield* Effect.forkChild(delivery.waitForBreaker(gateOf(open)), { startImmediately: true })
    return { delivery, passed, fiber }
  })

describe("the choice for a trial", () => {
  it.effect("CB-11 ruling 72 a run that is abandoned while it waits gives it back at its end", () =>
    Effect.gen(function* () {
      const { delivery, passed, fiber } = yield* waiting(true)
      delivery.runBegins()
      yield* delivery.ensureClosed
      assert.deepStrictEqual(passed, [])
      yield* Fiber.interrupt(fiber)
      delivery.runEnded(Exit.interrupt())
      assert.deepStrictEqual(passed, [record])
    })
  )

  it.effect("CB-11 ruling 72 a record that waits for the end of a pause does not keep it", () =>
    Effect.gen(function* () {
      const { passed, fiber } = yield* waiting(false)
      assert.deepStrictEqual(passed, [record])
      yield* Fiber.interrupt(fiber)
    })
  )
})
