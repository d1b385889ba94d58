/**
 * Keys that have waited for too long: what follows them so far is dead-lettered in order, reason `KEY_BLOCKED`, and the key goes on behind it. A held record becomes the dead
 * letter that it was, with its own reason.
 */

import type { ConsumerRecord } from "../../../ConsumerRecord.ts"
import { KeyBlocked } from "../../../EventBusError.ts"
import * as Failures from "../../failure/failure.ts"
import type { Entry } from "../../order/entry.ts"
import * as LockCopies from "../../order/lockCopies.ts"
import type { Unit } from "../../order/unit.ts"
import type { ResultWithCopy } from "../../record/deliveryResult.ts"
import * as BindingKey from "../../settings/bindingKey.ts"
import type { ConsumerContext } from "../consumerContext.ts"
import { deadLetter, retryStateOf } from "../routing.ts"

/** Gives up keys whose record has been held for longer than `holdFor`, and those whose first follower is about to be deleted. */
export const expire = (context: ConsumerContext<unknown>, unit: Unit): void => {
  const nowMillis = context.clock.currentTimeMillisUnsafe()
  const { holdForMillis } = context.definition.perKey
  const { retentionMillis } = unit.options.retention() ?? {}
  for (const entry of unit.table.values()) {
    const { held } = entry
    const isDue = held !== undefined && entry.isHeld && nowMillis - held.sinceMillis >= holdForMillis
    if (isDue || (retentionMillis !== undefined && isEndangered(unit, entry, retentionMillis, nowMillis)))
      unit.heldKeys.giveUp(entry, unit.table.mainPosition)
  }
}

/** All retries of a record have had their time after this multiple of their delays. The source keeps its records for twice the delays at least. */
const timesDelays = 1.5

/**
 * Whether the first follower is older than half of the source's retention. A key that was parked a short while ago is not given up, however old its records are: it may be that the group
 * is far behind, and its retries have not had their time.
 */
const isEndangered = ({ options }: Unit, entry: Entry, retentionMillis: number, nowMillis: number): boolean => {
  const { firstFollower: first } = entry
  // A held record that is handled again stands in front of what follows it.
  if (first === undefined || first.offset <= entry.offset) return false
  const parkedMillis = nowMillis - entry.sinceMillis
  if (nowMillis - first.timestamp < retentionMillis / 2 || parkedMillis < timesDelays * options.delaysMillis)
    return false
  return entry.isHeld ? entry.held !== undefined : entry.blockedTo <= first.offset
}

/** The dead letter of a record that is given up without an attempt. */
export const letterOf = (
  context: ConsumerContext<unknown>,
  unit: Unit,
  entry: Entry,
  record: ConsumerRecord
): ResultWithCopy => {
  const { definition } = context
  const { main } = unit.options
  const state = retryStateOf(context, main, record)
  const error = new KeyBlocked({ binding: BindingKey.label(definition), ...at(record), behind: entry.offset })
  const failed = {
    ...{ attempts: 0, failure: Failures.fromUnknown(error), state },
    firstFailureMillis: context.clock.currentTimeMillisUnsafe()
  }
  const result = deadLetter(context, main, record, failed, "KEY_BLOCKED")
  const held = entry.held?.record
  if (held === undefined || record.offset !== entry.offset) return result
  return { ...result, copy: LockCopies.letterOfHeld(held, result.copy, definition.groupId) }
}

const at = ({ topic, partition, offset }: ConsumerRecord) => ({ topic, partition, offset })
