/** Reads dead events in insertion order, a few hundred rows at a time, and names the group of each. */
import { Fingerprint } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { DeadEvent, Selection } from "../../DeadEvents.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { DeadEventStatements, DeadRow, DeadRowFilter } from "../store/contract.ts"

const rowsAtOnce = 500

/** Class and message of the error in a row, whose text is `ClassName: message`, or what was thrown. */
export const errorOf = ({ lastError = "" }: DeadRow): { readonly className: string; readonly message: string } => {
  const [, className, message] = /^([\w$.@/-]{1,128})(?:: (.*))?$/s.exec(lastError) ?? []
  return { className: className ?? "", message: className === undefined ? lastError : (message ?? "") }
}

export const toDeadEvent = (row: DeadRow): DeadEvent => ({
  ...row,
  group: Fingerprint.ofSummary(errorOf(row), row.eventType)
})

/** The part of a selection that the database decides. Groups are not among it: they come from the text of the error. */
export const filterOf = ({ eventType, aggregateType, aggregateId, eventIds }: Selection): DeadRowFilter => ({
  ...(eventType === undefined ? {} : { eventType }),
  ...(aggregateType === undefined ? {} : { aggregateType }),
  ...(aggregateId === undefined ? {} : { aggregateId }),
  ...(eventIds === undefined ? {} : { eventIds })
})

/** Calls back for each dead event from behind a sequence number, until that answers false. */
export const eachDeadEvent = Effect.fnUntraced(function* (
  statements: DeadEventStatements,
  { groups, ...select }: Selection,
  afterSeq: number,
  take: (event: DeadEvent) => boolean
): Effect.fn.Return<void, OutboxStoreError> {
  const filter = filterOf(select)
  let after = afterSeq
  while (true) {
    const rows = yield* statements.page(filter, rowsAtOnce, after)
    for (const row of rows) {
      after = row.seq
      const event = toDeadEvent(row)
      if ((groups === undefined || groups.includes(event.group)) && !take(event)) return
    }
    if (rows.length < rowsAtOnce) return
  }
})
