/**
 * Writes what an operator must know into Effect's log: once when it happens, not once per attempt, and not a line for each record of a rateLimit.
 */
import { Clock, Effect, type Scope } from "effect"
import type { EventBusEvent, Settlement } from "../../EventBusEvent.ts"
import { pluralize } from "../base/pluralize.ts"
import * as Acls from "../checks/acls.ts"
import * as LogAnnotations from "../delivery/logAnnotations.ts"
import type { EventHub } from "../observe/eventHub.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as LogRateLimit from "./logRateLimit.ts"

/** Logs the hub's events with the loggers of the fiber that calls this, until the scope closes. */
export const attach = (
  hub: EventHub,
  bindingOf: (event: EventBusEvent) => LogAnnotations.Source | undefined
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const run = Effect.runForkWith(yield* Effect.context())
    const said: Said = { crashes: new Map(), acls: new Map(), refusals: new Map() }
    const rateLimit = LogRateLimit.make(
      ({ cluster, binding }, count) => {
        const more = `${count} more records were routed, dead-lettered or skipped within a second`
        run(Effect.annotateLogs(Effect.logWarning(more), { cluster, bindingName: binding }))
      },
      yield* Clock.Clock
    )
    const unsubscribe = hub.subscribe((event) => {
      if (event._tag === "Settled" && event.target !== undefined && event.settlement !== "Abandoned") {
        if (said.refusals.size > 0) said.refusals.delete(topicKey(event, event.target.topic))
      }
      if (event._tag === "Settled" && (isQuiet(event.settlement) || event.failure === undefined)) return
      if (event._tag === "Settled" && !rateLimit.allows(event)) return
      const log = describe(event, said)
      if (log !== undefined) run(Effect.annotateLogs(log, LogAnnotations.ofEvent(event, bindingOf(event))))
    }, "rare")
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        unsubscribe()
        rateLimit.flush()
      })
    )
  })

/** What need not be said again. */
interface Said {
  /** By consumer: the last crash. */
  readonly crashes: Map<string, string>
  /** By binding: the ACLs that were missing. */
  readonly acls: Map<string, string>
  /** By target topic: how it refused copies since it last took one. All records that wait for it would say the same. */
  readonly refusals: Map<string, Set<string>>
}

const keyOf = ({ cluster, binding }: Pick<EventBusEvent, "cluster" | "binding">): string =>
  BindingKey.of({ cluster, name: binding })

const topicKey = (event: Pick<EventBusEvent, "cluster" | "binding">, topic: string): string =>
  `${keyOf(event)}/${topic}`

/** Whether this kind of refusal is new for the topic. */
const isNews = ({ refusals }: Said, event: EventOf<"PublishFailed">): boolean => {
  const { topic, error } = event
  const key = topicKey(event, topic)
  const known = refusals.get(key)
  if (known?.has(error._tag)) return false
  refusals.set(key, (known ?? new Set<string>()).add(error._tag))
  return true
}

type EventOf<T extends EventBusEvent["_tag"]> = Extract<EventBusEvent, { readonly _tag: T }>

/** How most records end, or what another consumer goes on with. */
const isQuiet = (settlement: Settlement): settlement is "Handled" | "Abandoned" =>
  settlement === "Handled" || settlement === "Abandoned"

const describe = (event: EventBusEvent, said: Said): Effect.Effect<void> | undefined => {
  switch (event._tag) {
    case "StateChanged": {
      const reasons = event.reasons.length === 0 ? "" : ` (${event.reasons.join(", ")})`
      return Effect.logInfo(`Binding is ${event.to}${reasons}, was ${event.from}`)
    }
    case "SessionCrashed": {
      // A broker that stays away, or refuses every session that starts, would say the same at every attempt.
      const key = `${keyOf(event)}/${event.consumer}`
      if (event.attempt > 1 && said.crashes.get(key) === event.error.message) return undefined
      said.crashes.set(key, event.error.message)
      return Effect.logError(`Consumer cannot run and is started again until it can: ${event.error.message}`)
    }
    case "EventLoopBlocked":
      return Effect.logError(
        `The event loop was blocked for ${event.blockedMillis} ms, and no heartbeat could be sent; after ${event.sessionTimeoutMillis} ms the group gives the partitions away. Move long computations off this thread, or yield in between`
      )
    case "TopicUnavailable":
      return Effect.logError(`Nothing can be read yet: ${event.error.message}`)
    case "AclsMissing": {
      const acls = event.acls.map(Acls.describe).join(", ")
      if (said.acls.get(keyOf(event)) === acls) return undefined
      said.acls.set(keyOf(event), acls)
      return Effect.logWarning(`ACLs are missing: ${acls}. Requests that need them fail until they are granted`)
    }
    case "ConsumersIdle":
      return Effect.logWarning(
        `concurrency is ${event.concurrency}, but topic '${event.topic}' has ${event.partitions} partitions: the rest stays idle`
      )
    case "PartitionAssigned":
      return Effect.logInfo(`Partition assigned, reading from ${event.position}`)
    case "PartitionReleased":
      return Effect.logInfo(`Partition revoked, committed ${event.committed}`)
    case "PartitionLost":
      return Effect.logWarning("Partition lost to the group: work in progress was cut off, nothing committed")
    case "RecordsGone": {
      const count = event.gone === undefined ? "an unknown number of" : String(event.gone)
      return Effect.logError(
        `${count} records were never read (${event.cause}): offset ${event.from} is gone, going on at ${event.to}`
      )
    }
    case "Settled":
      if (isQuiet(event.settlement)) return undefined
      return Effect.logWarning(
        `Record ${settlements[event.settlement]}${event.target === undefined ? "" : ` ${event.target.topic}`} after ${pluralize(event.attempts, "attempt")}: ${event.failure?.className ?? ""} ${event.failure?.message ?? ""}`
      )
    case "AlertFailed":
      return Effect.logWarning(`The alert handler failed: ${event.failure.className} ${event.failure.message}`)
    case "AlertDropped":
      return Effect.logWarning("Too many alerts wait: a dead letter is stored without one")
    case "LetterHandlerFailed":
      return Effect.logWarning(`The dead letter handler failed: ${event.failure.className} ${event.failure.message}`)
    case "ScheduledReplay": {
      const { replayed, passedOver, refused } = event.report
      return Effect.logInfo(`Dead letters replayed: ${replayed}, passed over: ${passedOver}, refused: ${refused}`)
    }
    case "StrategyFailed":
      return Effect.logError(`Dead letters cannot be worked on, and are tried again: ${event.error.message}`)
    case "BreakerChanged":
      return event.to === "CLOSED"
        ? Effect.logInfo("Circuit breaker is CLOSED: normal processing")
        : Effect.logWarning(
            `Circuit breaker is ${event.to}, was ${event.from}: ${event.snapshot.failureRate} % failures, ${event.snapshot.slowCallRate} % slow calls`
          )
    case "PublishFailed":
      if (!isNews(said, event)) return undefined
      return Effect.logError(`Cannot publish to '${event.topic}', the record waits: ${event.error.message}`)
    case "TransactionFailed":
      return Effect.logWarning(`A transaction failed and is started anew: ${event.error.message}`)
    case "CommitFailed":
      if (event.attempt !== 1 || event.error.retryable) return undefined
      return Effect.logError(`Cannot commit, records will be delivered again: ${event.error.message}`)
    case "ProcessingBudgetReached":
      return Effect.logWarning("Handling took more than 70 % of maxPollInterval and was cut short")
    case "DrainTimedOut":
      return Effect.logWarning(
        `${event.unfinished} records were still being handled at the end of the drain; they will be delivered again`
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
