/**
 * Writes the events that an operator must know into Effect's log: one line when something begins, not one per attempt, and a limited number of lines about single
 * records.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { EventBusEvent } from "../../EventBusEvent.ts"
import * as LogLine from "../base/logLine.ts"
import * as Acls from "../checks/acls.ts"
import * as ForeignGroups from "../checks/foreignGroups.ts"
import * as LogAnnotations from "../delivery/logAnnotations.ts"
import type { EventHub } from "../observe/eventHub.ts"
import * as BindingAnnotations from "../settings/bindingAnnotations.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as EventLines from "./eventLines.ts"
import * as LogRateLimit from "./logRateLimit.ts"
import * as RecordLines from "./recordLines.ts"

/** Logs the events of the hub with the loggers of the calling fiber, until the scope closes. */
export const attach = (
  hub: EventHub,
  bindingOf: (event: Pick<EventBusEvent, "cluster" | "binding">) => LogAnnotations.Source | undefined
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const run = Effect.runForkWith(yield* Effect.context())
    const reported: Reported = {
      crashes: new Map(),
      acls: new Map(),
      shared: new Map(),
      refusals: new Map(),
      transactions: new Map()
    }
    const clock = yield* Clock.Clock
    const rateLimit = LogRateLimit.make((of, count) => {
      const definition = bindingOf(of)?.definition
      const { cluster, binding: name } = of
      const annotations =
        definition === undefined ? BindingAnnotations.ofKey({ cluster, name }) : BindingAnnotations.of(definition)
      run(Effect.annotateLogs(LogLine.warning(LogRateLimit.leftOutText(count)), annotations))
    }, clock)
    const unsubscribe = hub.subscribe((event) => {
      if (event._tag === "Settled") {
        if (event.target !== undefined && event.settlement !== "Abandoned" && reported.refusals.size > 0) {
          reported.refusals.delete(topicKey(event, event.target.topic))
        }
        if (RecordLines.isQuiet(event.settlement) || event.failure === undefined) return
        if (!rateLimit.allows(event)) return
      }
      if (!isNews(event, reported, clock.currentTimeMillisUnsafe())) return
      const binding = bindingOf(event)
      const line = EventLines.of(event, binding?.definition)
      if (line !== undefined) run(Effect.annotateLogs(line, LogAnnotations.ofEvent(event, binding)))
    }, "rare")
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        unsubscribe()
        rateLimit.flush()
      })
    )
  })

/** The errors in the log so far, so that no line is repeated. */
interface Reported {
  /** By consumer: the error of the last crash. */
  readonly crashes: Map<string, string>
  /** By binding: the missing ACLs. */
  readonly acls: Map<string, string>
  /** By binding: the topics that other groups use, too. */
  readonly shared: Map<string, string>
  /** By target topic: the kinds of errors since it last accepted a copy. All records that wait for the topic fail with the same error. */
  readonly refusals: Map<string, Set<string>>
  /** By partition: when its last failed transaction was reported, epoch milliseconds. A partition starts its transactions anew twice a second. */
  readonly transactions: Map<string, number>
}

/** A partition whose transactions keep failing has a line once in this time; health says for how long. */
const transactionMillis = 60_000

/** Whether the log does not report this already. Remembers the event. */
const isNews = (event: EventBusEvent, reported: Reported, nowMillis: number): boolean => {
  const { crashes, acls, shared, refusals, transactions } = reported
  switch (event._tag) {
    case "SessionCrashed": {
      // An unreachable broker fails every attempt with the same error.
      const key = `${keyOf(event)}/${event.consumer}`
      const isSame = event.attempt > 1 && crashes.get(key) === event.error.message
      crashes.set(key, event.error.message)
      return !isSame
    }
    case "TopicsShared": {
      const topics = event.shared.map(ForeignGroups.describe).join(", ")
      const isSame = shared.get(keyOf(event)) === topics
      shared.set(keyOf(event), topics)
      return !isSame
    }
    case "AclsMissing": {
      const missing = event.acls.map(Acls.describe).join(", ")
      const isSame = acls.get(keyOf(event)) === missing
      acls.set(keyOf(event), missing)
      return !isSame
    }
    case "PublishFailed": {
      const key = topicKey(event, event.topic)
      const known = refusals.get(key) ?? new Set()
      if (known.has(event.error._tag)) return false
      refusals.set(key, known.add(event.error._tag))
      return true
    }
    case "TransactionFailed": {
      const key = `${topicKey(event, event.topic)}/${event.partition}`
      if (nowMillis - (transactions.get(key) ?? Number.NEGATIVE_INFINITY) < transactionMillis) return false
      transactions.set(key, nowMillis)
      return true
    }
    default:
      return true
  }
}

const keyOf = ({ cluster, binding }: Pick<EventBusEvent, "cluster" | "binding">): string =>
  BindingKey.of({ cluster, name: binding })

const topicKey = (event: Pick<EventBusEvent, "cluster" | "binding">, topic: string): string =>
  `${keyOf(event)}/${topic}`
