/**
 * Writes the events that an operator must know into Effect's log: one line when something begins, not one per attempt, and a limited number of lines about single
 * records.
 */
import { Clock, Effect, type Scope } from "effect"
import type { EventBusEvent, Settlement } from "../../EventBusEvent.ts"
import { pluralize } from "../base/pluralize.ts"
import * as Acls from "../checks/acls.ts"
import * as LogAnnotations from "../delivery/logAnnotations.ts"
import type { EventHub } from "../observe/eventHub.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as LogRateLimit from "./logRateLimit.ts"

/** Logs the events of the hub with the loggers of the calling fiber, until the scope closes. */
export const attach = (
  hub: EventHub,
  bindingOf: (event: EventBusEvent) => LogAnnotations.Source | undefined
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const run = Effect.runForkWith(yield* Effect.context())
    const reported: Reported = { crashes: new Map(), acls: new Map(), refusals: new Map() }
    const rateLimit = LogRateLimit.make(
      ({ cluster, binding }, count) => {
        const more = `${count} more records were routed, dead-lettered or skipped within a second`
        run(Effect.annotateLogs(Effect.logWarning(more), { cluster, bindingName: binding }))
      },
      yield* Clock.Clock
    )
    const unsubscribe = hub.subscribe((event) => {
      if (event._tag === "Settled" && event.target !== undefined && event.settlement !== "Abandoned") {
        if (reported.refusals.size > 0) reported.refusals.delete(topicKey(event, event.target.topic))
      }
      if (event._tag === "Settled" && (isQuiet(event.settlement) || event.failure === undefined)) return
      if (event._tag === "Settled" && !rateLimit.allows(event)) return
      const log = describe(event, reported)
      if (log !== undefined) run(Effect.annotateLogs(log, LogAnnotations.ofEvent(event, bindingOf(event))))
    }, "rare")
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        unsubscribe()
        rateLimit.flush()
      })
    )
  })

/** What the log has already reported, so that it is not repeated. */
interface Reported {
  /** By consumer: the error of the last crash. */
  readonly crashes: Map<string, string>
  /** By binding: the missing ACLs. */
  readonly acls: Map<string, string>
  /** By target topic: the kinds of errors since it last accepted a copy. All records that wait for the topic fail with the same error. */
  readonly refusals: Map<string, Set<string>>
}

const keyOf = ({ cluster, binding }: Pick<EventBusEvent, "cluster" | "binding">): string =>
  BindingKey.of({ cluster, name: binding })

const topicKey = (event: Pick<EventBusEvent, "cluster" | "binding">, topic: string): string =>
  `${keyOf(event)}/${topic}`

/** Whether this kind of error is new for the topic. Remembers it. */
const isNewRefusal = ({ refusals }: Reported, event: EventOf<"PublishFailed">): boolean => {
  const { topic, error } = event
  const key = topicKey(event, topic)
  const known = refusals.get(key)
  if (known?.has(error._tag)) return false
  refusals.set(key, (known ?? new Set<string>()).add(error._tag))
  return true
}

type EventOf<T extends EventBusEvent["_tag"]> = Extract<EventBusEvent, { readonly _tag: T }>

/** Most records end as `Handled`; another consumer continues with an abandoned one. Neither is worth a line. */
const isQuiet = (settlement: Settlement): settlement is "Handled" | "Abandoned" =>
  settlement === "Handled" || settlement === "Abandoned"

const describe = (event: EventBusEvent, reported: Reported): Effect.Effect<void> | undefined => {
  switch (event._tag) {
    case "StateChanged": {
      const reasons = event.reasons.length === 0 ? "" : ` (${event.reasons.join(", ")})`
      return Effect.logInfo(`Binding is ${event.to}${reasons}, was ${event.from}`)
    }
    case "SessionCrashed": {
      // One line per error: a broker that stays unreachable fails every attempt with the same error.
      const key = `${keyOf(event)}/${event.consumer}`
      if (event.attempt > 1 && reported.crashes.get(key) === event.error.message) return undefined
      reported.crashes.set(key, event.error.message)
      return Effect.logError(`Consumer failed; restarting with backoff: ${event.error.message}`)
    }
    case "EventLoopBlocked":
      return Effect.logError(
        `The event loop was blocked for ${event.blockedMillis} ms, so no heartbeat was sent. After ${event.sessionTimeoutMillis} ms without one, the group reassigns the partitions. Move long computations to a worker thread, or yield in between`
      )
    case "TopicUnavailable":
      return Effect.logError(`Topic cannot be read; waiting until it can: ${event.error.message}`)
    case "AclsMissing": {
      const acls = event.acls.map(Acls.describe).join(", ")
      if (reported.acls.get(keyOf(event)) === acls) return undefined
      reported.acls.set(keyOf(event), acls)
      return Effect.logWarning(`ACLs are missing: ${acls}. Requests that need them fail until they are granted`)
    }
    case "ConsumersIdle":
      return Effect.logWarning(
        `Topic '${event.topic}' has ${pluralize(event.partitions, "partition")}, but concurrency is ${event.concurrency}: ${pluralize(event.concurrency - event.partitions, "consumer")} will be idle`
      )
    case "PartitionAssigned":
      return Effect.logInfo(`Partition assigned; reading from offset ${event.position}`)
    case "PartitionReleased":
      return Effect.logInfo(`Partition revoked; committed offset ${event.committed}`)
    case "PartitionLost":
      return Effect.logWarning("Partition lost; running handlers were interrupted, nothing was committed")
    case "RecordsGone": {
      const count = event.gone === undefined ? "an unknown number of" : String(event.gone)
      return Effect.logError(
        `${count} records were never read (${event.cause}): offset ${event.from} no longer exists, continuing at ${event.to}`
      )
    }
    case "Settled":
      if (isQuiet(event.settlement)) return undefined
      return Effect.logWarning(
        `Record ${settlements[event.settlement]}${event.target === undefined ? "" : ` ${event.target.topic}`} after ${pluralize(event.attempts, "attempt")}: ${event.failure?.className ?? ""} ${event.failure?.message ?? ""}`
      )
    case "AlertFailed":
      return Effect.logWarning(`Alert handler failed: ${event.failure.className} ${event.failure.message}`)
    case "AlertDropped":
      return Effect.logWarning("Alert queue is full; dropped the alert about a stored dead letter")
    case "LetterHandlerFailed":
      return Effect.logWarning(`Dead letter handler failed: ${event.failure.className} ${event.failure.message}`)
    case "ScheduledReplay": {
      const { replayed, passedOver, refused } = event.report
      return Effect.logInfo(`Dead letters replayed: ${replayed}, passed over: ${passedOver}, refused: ${refused}`)
    }
    case "StrategyFailed":
      return Effect.logError(`Dead letter strategy failed; retrying: ${event.error.message}`)
    case "BreakerChanged":
      return event.to === "CLOSED"
        ? Effect.logInfo("Circuit breaker is CLOSED: normal processing")
        : Effect.logWarning(
            `Circuit breaker is ${event.to}, was ${event.from}: ${event.snapshot.failureRate} % failures, ${event.snapshot.slowCallRate} % slow calls`
          )
    case "PublishFailed":
      if (!isNewRefusal(reported, event)) return undefined
      return Effect.logError(
        `Cannot publish to '${event.topic}'; retrying while the record waits: ${event.error.message}`
      )
    case "TransactionFailed":
      return Effect.logWarning(`Transaction failed; restarting from the committed offset: ${event.error.message}`)
    case "CommitFailed":
      if (event.attempt !== 1 || event.error.retryable) return undefined
      return Effect.logError(`Commit failed; records will be delivered again: ${event.error.message}`)
    case "ProcessingBudgetReached":
      return Effect.logWarning("Handling took more than 70 % of maxPollInterval; it was cut short")
    case "DrainTimedOut":
      return Effect.logWarning(
        `Drain timed out with ${pluralize(event.unfinished, "record")} in work; they will be delivered again`
      )
    default:
      return undefined
  }
}

const settlements = {
  Routed: "routed to",
  DeadLettered: "dead-lettered to",
  Skipped: "skipped",
  Halted: "halted its partition",
  HeldByBreaker: "waits for the circuit breaker"
} as const
