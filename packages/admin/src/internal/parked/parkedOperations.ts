/**
 * The operations on parked keys, in a process that runs the bindings and outside of it.
 */
import { type EventBusConnector, type ParkedKeys, Replay } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { AdminParked, ParkedCommand } from "../../AdminParked.ts"
import type { Shown } from "../masking.ts"
import * as ParkedAnswers from "./parkedAnswers.ts"

type Bindings = Pick<EventBusConnector.EventBusConnector["Service"], "parked">

const most = 500

export const make = ({ parked }: Bindings, shown: Shown): AdminParked => {
  const decided = (verb: "retry" | "skip"): ParkedCommand =>
    Effect.fnUntraced(function* (name, record, reason, { payload = false } = {}) {
      const keys: ParkedKeys.ParkedKeys = yield* parked(name)
      const { key, by } = yield* keys[verb](record, reason)
      return { key: ParkedAnswers.keyOf(key, shown(payload)), by }
    })
  return {
    parked: Effect.fnUntraced(function* (name, { payload = false, ...page } = {}) {
      const { list, orderingMode } = yield* parked(name)
      const { limit = 1, page: cursor } = page
      if (!Number.isInteger(limit) || limit < 1 || limit > most)
        return yield* refused("limit", String(limit), `a whole number, 1 to ${most}`)
      if (cursor !== undefined && !ParkedAnswers.isCursor(cursor))
        return yield* refused("page", cursor, "'next' of the page before")
      return { ...ParkedAnswers.pageOf(yield* list, page, shown(payload)), orderingMode }
    }),
    retryParked: decided("retry"),
    skipParked: decided("skip"),
    acceptParkedLoss: Effect.fnUntraced(function* (name, expected, reason) {
      const keys: ParkedKeys.ParkedKeys = yield* parked(name)
      const accepted = yield* keys.acceptLoss(expected, reason)
      return { keys: accepted.keys.length }
    })
  }
}

const refused = (argument: string, found: string, expected: string) =>
  new Replay.InvalidArgument({ command: "parked", argument, given: found, expected })
