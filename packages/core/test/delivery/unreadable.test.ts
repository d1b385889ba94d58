/** A record that cannot be read gives its permit back before its dead letter is made. That may be the end of the last trial of a half-open breaker. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import type { RecordInWork } from "../../src/internal/delivery/recordInWork.ts"
import * as Unreadable from "../../src/internal/delivery/unreadable.ts"
import { Undecodable } from "../../src/internal/record/decoding.ts"
import type { BreakerPermits } from "../../src/internal/slots/breakerPermits.ts"
import { DeliveryContext } from "../../src/internal/slots/deliveryContext.ts"
import { DecodeFailure } from "../../src/Serde.ts"

const record: ConsumerRecord = {
  ...{ topic: "orders", partition: 0, offset: 0n, timestamp: 0, timestampType: "CreateTime" },
  ...{ key: null, value: null, headers: [] }
}

const gate = {
  ...{ stopping: false, ending: false, current: record, open: true, mayWait: true },
  ...{ runnable: Effect.never, onStop: () => () => {} }
}

/** A half-open breaker whose other trials have failed: the end of this one opens it. */
const lastTrial = () => {
  let isOpen = false
  return {
    ...{ tryAcquire: () => 1, isTrial: () => true, isCurrent: () => !isOpen, remembersFailures: () => false },
    ...{ staysInPlace: () => true, pass: () => {}, giveBack: () => {} },
    endTrial: () => {
      isOpen = true
    }
  } as Partial<BreakerPermits> as BreakerPermits
}

describe("a record that cannot be read", () => {
  it.effect("rulings 17, 28 waits when the end of its trial opens the breaker", () =>
    Effect.gen(function* () {
      const delivery = new DeliveryContext({ slots: [], breaker: lastTrial(), clock: yield* Clock.Clock }, 0)
      assert.isTrue(delivery.tryAdmit(gate))
      const failure = new DecodeFailure({ serde: "json", path: "", detail: "no JSON" })
      const work = { delivery, record } as unknown as RecordInWork<unknown>
      const settled = Unreadable.settleInSlot(work, new Undecodable(undefined, failure))
      assert.strictEqual(settled.settlement, "HeldByBreaker")
    })
  )
})
