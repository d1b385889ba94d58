/**
 * The dead letter of a lock whose loss an operator has accepted. A held record becomes the dead letter that it was, with its own reason.
 */
import type { ConsumerRecord } from "../../../ConsumerRecord.ts"
import { KeyBlocked } from "../../../EventBusError.ts"
import * as Failures from "../../failure/failure.ts"
import * as LockCopies from "../../order/lockCopies.ts"
import type { Partition } from "../../partition/partition.ts"
import type { Copy } from "../../record/copy.ts"
import type { Lock } from "../../record/orderHeaders.ts"
import * as BindingKey from "../../settings/bindingKey.ts"
import type { ConsumerContext } from "../consumerContext.ts"
import { deadLetter, retryStateOf } from "../routing.ts"

export const strandedLetter = (
  context: ConsumerContext<unknown>,
  at: Partition,
  record: ConsumerRecord,
  lock: Lock
): Copy => {
  const { definition, clock } = context
  const { topic, partition, offset } = record
  const binding = BindingKey.label(definition)
  const error = new KeyBlocked({ binding, topic, partition, offset, behind: lock.offset })
  const failed = {
    ...{ attempts: 0, failure: Failures.fromUnknown(error), state: retryStateOf(context, at, record) },
    firstFailureMillis: clock.currentTimeMillisUnsafe()
  }
  const { copy } = deadLetter(context, at, record, failed, "KEY_BLOCKED")
  return lock.kind === "held" ? LockCopies.letterOfHeld(record, copy, definition.groupId) : copy
}
